// ---- Drafts: what is being typed into a form, and the value it stands for ----

function fieldsOf(input) {
  return input.shape === undefined ? (input.fields ?? []) : PLAN.shapes.at(input.shape).fields;
}

/** What a list or map holds; an entry that is there has to be filled in. */
function itemOf(input) {
  return withOwn(input.item ?? { name: "", kind: "text" }, "required", true);
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The draft that a form begins with. Optional parts begin absent, so that recursive forms are finite. */
function startDraft(input, isWanted) {
  if (input.initial !== undefined) return draftOf(input, parseJson(input.initial));
  if (input.kind === "object") {
    if (!isWanted) return undefined;
    return fieldsOf(input).reduce((draft, field) => withOwn(draft, field.name, startDraft(field, field.required === true)), {});
  }
  if (input.kind === "variant") {
    return isWanted ? { chosen: 0, draft: startDraft(input.alternatives.at(0).input, true) } : undefined;
  }
  if (input.kind === "list" || input.kind === "map") return [];
  if (input.kind === "choice" && isWanted && input.choices.length === 1) return JSON.stringify(input.choices.at(0));
  return input.kind === "boolean" || input.kind === "file" ? undefined : "";
}

/** The draft that shows an existing value. */
function draftOf(input, value) {
  if (value === undefined || value === null) return startDraft({ name: input.name, kind: input.kind, shape: input.shape, fields: input.fields, choices: input.choices ?? [], alternatives: input.alternatives, item: input.item }, input.required === true);
  switch (input.kind) {
    case "object":
      return fieldsOf(input).reduce((draft, field) => {
        const inner = own(value, field.name);
        return withOwn(draft, field.name, inner === undefined ? undefined : draftOf(field, inner));
      }, {});
    case "list":
      return Array.isArray(value) ? value.map((item) => draftOf(itemOf(input), item)) : [];
    case "map":
      return ownEntries(value).map(([name, inner]) => ({ name, draft: draftOf(itemOf(input), inner) }));
    case "variant": {
      const chosen = chosenAlternative(input, value);
      return { chosen, draft: draftOf(input.alternatives.at(chosen).input, value) };
    }
    case "choice":
      return JSON.stringify(value);
    case "boolean":
      return value === true || value === "true";
    case "json":
      return JSON.stringify(value, null, 2);
    case "file":
      return undefined;
    case "datetime":
      return localTime(value);
    case "date":
      return String(value).slice(0, 10);
    default:
      return typeof value === "object" ? JSON.stringify(value) : String(value);
  }
}

/** A moment as a control for date and time writes it: in the reader's own time. */
function localTime(value) {
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
}

function chosenAlternative(input, value) {
  const told = input.discriminator === undefined ? undefined : own(value, input.discriminator);
  const byName = input.alternatives.findIndex((one) => told !== undefined && one.value === String(told));
  if (byName >= 0) return byName;
  const fits = (one) => {
    if (one.input.kind === "object") return value !== null && typeof value === "object" && !Array.isArray(value);
    if (one.input.kind === "list") return Array.isArray(value);
    return typeof value !== "object";
  };
  return Math.max(0, input.alternatives.findIndex(fits));
}

/** The value that a draft stands for; undefined means that nothing is sent. */
function valueOf(input, draft) {
  if (draft === undefined || draft === null) return undefined;
  switch (input.kind) {
    case "object": {
      const pairs = fieldsOf(input).map((field) => [field.name, valueOf(field, own(draft, field.name))]);
      return Object.fromEntries(pairs.filter((pair) => pair.at(1) !== undefined));
    }
    case "list": {
      const items = draft.map((item) => valueOf(itemOf(input), item)).filter((item) => item !== undefined);
      return items.length === 0 && input.required !== true ? undefined : items;
    }
    case "map": {
      const pairs = draft.filter((entry) => entry.name !== "").map((entry) => [entry.name, valueOf(itemOf(input), entry.draft) ?? null]);
      return pairs.length === 0 && input.required !== true ? undefined : Object.fromEntries(pairs);
    }
    case "variant": {
      const one = input.alternatives.at(draft.chosen);
      const value = valueOf(one.input, draft.draft);
      const isTold = input.discriminator !== undefined && one.value !== undefined && value !== null && typeof value === "object";
      return isTold && !Array.isArray(value) && own(value, input.discriminator) === undefined ? withOwn(value, input.discriminator, one.value) : value;
    }
    case "choice":
      return draft === "" ? undefined : parseJson(draft);
    case "number":
    case "integer":
      return String(draft).trim() === "" ? undefined : Number(draft);
    case "json":
      return draft.trim() === "" ? undefined : parseJson(draft);
    case "datetime": {
      if (draft === "") return undefined;
      const date = new Date(draft);
      return Number.isNaN(date.getTime()) ? draft : date.toISOString();
    }
    case "boolean":
    case "file":
      return draft;
    default:
      return draft === "" ? undefined : draft;
  }
}

/** What is wrong with a draft, as `{ place, message }`; `place` is the path of the field. */
function problemsOf(input, draft, place) {
  const found = (message) => [{ place, message }];
  const value = valueOf(input, draft);
  if (input.kind === "json" && typeof draft === "string" && draft.trim() !== "" && value === undefined) return found("This is not valid JSON.");
  if (value === undefined) return input.required === true ? found("This is required.") : [];
  switch (input.kind) {
    case "object":
      return fieldsOf(input).flatMap((field) => problemsOf(field, own(draft, field.name), `${place}/${field.name}`));
    case "variant":
      return problemsOf(input.alternatives.at(draft.chosen).input, draft.draft, `${place}/${draft.chosen}`);
    case "map":
      return draft.flatMap((entry, index) => problemsOf(itemOf(input), entry.draft, `${place}/${index}`));
    case "list":
      if (value.length < (input.minLength ?? 0)) return found(`At least ${input.minLength} entries are needed.`);
      if (value.length > (input.maxLength ?? Infinity)) return found(`At most ${input.maxLength} entries are allowed.`);
      return draft.flatMap((item, index) => problemsOf(itemOf(input), item, `${place}/${index}`));
    case "number":
    case "integer":
      return numberProblem(input, value).flatMap(found);
    case "email":
      return /^[^@\s]+@[^@\s]+$/.test(value) ? [] : found("This is not an e-mail address.");
    case "file":
    case "choice":
    case "boolean":
    case "json":
      return [];
    default:
      return textProblem(input, String(value)).flatMap(found);
  }
}

function numberProblem(input, value) {
  if (Number.isNaN(value)) return ["This is not a number."];
  if (input.kind === "integer" && !Number.isInteger(value)) return ["This must be a whole number."];
  const { minimum, maximum } = input;
  if (minimum !== undefined && (input.above === true ? value <= minimum : value < minimum)) return [`This must be ${input.above === true ? "more than" : "at least"} ${minimum}.`];
  if (maximum !== undefined && (input.below === true ? value >= maximum : value > maximum)) return [`This must be ${input.below === true ? "less than" : "at most"} ${maximum}.`];
  if (input.step !== undefined && Math.abs(value / input.step - Math.round(value / input.step)) > 0.000001) return [`This must be a multiple of ${input.step}.`];
  return [];
}

function textProblem(input, value) {
  if (value.length < (input.minLength ?? 0)) return [`At least ${input.minLength} characters are needed.`];
  if (value.length > (input.maxLength ?? Infinity)) return [`At most ${input.maxLength} characters are allowed.`];
  if (input.pattern !== undefined && !matchesPattern(input.pattern, value)) return [`This does not have the expected form (${input.pattern}).`];
  return [];
}

function matchesPattern(pattern, value) {
  if (value.length > 5000) return true;
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}
