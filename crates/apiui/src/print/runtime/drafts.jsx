// ---- Drafts: what is being typed into a form, and the value it stands for ----
// A draft that is undefined sends nothing, a draft that is null sends null. A draft that is still the one that the form
// began with stands for the value that the API sent, exactly as it was.

/** The draft of a text that is there and empty, where emptying the control means something else. */
const EMPTY_TEXT = { isEmptyText: true };

const TEXT_KINDS = ["text", "multiline", "secret", "email", "url"];

function fieldsOf(input) {
  return input.shape === undefined ? (input.fields ?? []) : PLAN.shapes.at(input.shape).fields;
}

/** What a list or map holds; an entry that is there has to be filled in. */
function itemOf(input) {
  return withOwn(input.item ?? { name: "", kind: "text" }, "required", true);
}

function parseJson(text) {
  try {
    return parseExactJson(text);
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
  if (input.kind === "variant") return isWanted ? newVariant(input, 0) : undefined;
  if (input.kind === "list" || input.kind === "map") return isWanted ? [] : undefined;
  if (input.kind === "choice" && isWanted && input.choices.length === 1) return exactJsonText(input.choices.at(0));
  return undefined;
}

function newEntry(input, name) {
  return { name, draft: startDraft(itemOf(input), true) };
}

function newVariant(input, chosen) {
  return { chosen, draft: startDraft(input.alternatives.at(chosen).input, true) };
}

/** An entry of a list or map that shows a value of the API: it keeps the value and the draft that stands for it. */
function entryOf(input, base, name) {
  const start = draftOf(input, base);
  return { name, base, start, draft: start };
}

/** The draft that shows an existing value. */
function draftOf(input, value) {
  if (value === undefined || value === null) return value;
  switch (input.kind) {
    case "object":
      if (!isNested(value) || Array.isArray(value)) return exactJsonText(value);
      return fieldsOf(input).reduce((draft, field) => withOwn(draft, field.name, draftOf(field, own(value, field.name))), {});
    case "list":
      return (Array.isArray(value) ? value : [value]).map((one) => entryOf(itemOf(input), one));
    case "map":
      return isNested(value) ? ownEntries(value).map(([name, inner]) => entryOf(itemOf(input), inner, name)) : exactJsonText(value);
    case "variant": {
      const chosen = chosenAlternative(input, value);
      const start = draftOf(input.alternatives.at(chosen).input, value);
      return { chosen, base: value, start, draft: start };
    }
    case "choice":
      return exactJsonText(value);
    case "boolean":
      return value === true || value === "true";
    case "json":
      return exactJsonText(value, 2);
    case "file":
      return undefined;
    default:
      return isNested(value) ? exactJsonText(value) : scalarText(value);
  }
}

function chosenAlternative(input, value) {
  const name = input.discriminator === undefined ? undefined : own(value, input.discriminator);
  const byName = input.alternatives.findIndex((one) => name !== undefined && one.value === String(name));
  if (byName >= 0) return byName;
  const score = (one) => {
    if (one.input.kind === "object") return isNested(value) && !Array.isArray(value) ? 1 + fieldsOf(one.input).filter((field) => own(value, field.name) !== undefined).length : 0;
    if (one.input.kind === "list") return Array.isArray(value) ? 1 : 0;
    return isNested(value) ? 0 : 1;
  };
  const scores = input.alternatives.map(score);
  return Math.max(0, scores.indexOf(Math.max(...scores)));
}

/** The value that a draft of a new item stands for; undefined means that nothing is sent. */
function valueOf(input, draft) {
  if (draft === undefined || draft === null) return draft;
  if (draft === EMPTY_TEXT) return "";
  switch (input.kind) {
    case "object": {
      if (typeof draft === "string") return parseJson(draft);
      const pairs = fieldsOf(input).map((field) => [field.name, valueOf(field, own(draft, field.name))]);
      return Object.fromEntries(pairs.filter((pair) => pair.at(1) !== undefined));
    }
    case "list":
      return draft.map((entry) => valueOfEntry(itemOf(input), entry)).filter((item) => item !== undefined);
    case "map": {
      if (typeof draft === "string") return parseJson(draft);
      const named = draft.filter((entry) => entry.name !== "");
      return Object.fromEntries(named.map((entry) => [entry.name, valueOfEntry(itemOf(input), entry) ?? null]));
    }
    case "variant": {
      const one = input.alternatives.at(draft.chosen);
      const value = valueOf(one.input, draft.draft);
      const isTold = input.discriminator !== undefined && one.value !== undefined && isNested(value);
      return isTold && !Array.isArray(value) && own(value, input.discriminator) === undefined ? withOwn(value, input.discriminator, one.value) : value;
    }
    case "choice":
      return draft === "" ? undefined : parseJson(draft);
    case "number":
    case "integer":
      return String(draft).trim() === "" ? undefined : (exactNumber(String(draft).trim()) ?? Number(draft));
    case "json":
      return draft.trim() === "" ? undefined : parseJson(draft);
    case "boolean":
    case "file":
      return draft;
    default:
      return draft === "" ? undefined : draft;
  }
}

function valueOfEntry(input, entry) {
  return entry.start === undefined && entry.base === undefined ? valueOf(input, entry.draft) : mergedValue(input, entry.base, entry.start, entry.draft);
}

/** The value after an edit: `base` is what the API sent and `start` the draft that showed it. What was not touched is `base`. */
function mergedValue(input, base, start, draft) {
  if (draft === start) return base;
  if (draft === undefined || draft === null) return draft;
  if (base === undefined && start === undefined) return valueOf(input, draft);
  if (input.kind === "object" && typeof draft !== "string") {
    const before = isNested(base) && !Array.isArray(base) ? base : {};
    return fieldsOf(input).reduce((value, field) => {
      const next = mergedValue(field, own(before, field.name), own(start, field.name), own(draft, field.name));
      return next === undefined ? withoutOwn(value, field.name) : next === own(value, field.name) ? value : withOwn(value, field.name, next);
    }, before);
  }
  if (input.kind === "variant") {
    const isSame = draft.base !== undefined && draft.chosen === start?.chosen;
    return isSame ? mergedValue(input.alternatives.at(draft.chosen).input, draft.base, draft.start, draft.draft) : valueOf(input, draft);
  }
  if (["list", "map"].includes(input.kind)) return valueOf(input, draft);
  return mergedScalar(input, base, start, draft);
}

function mergedScalar(input, base, start, draft) {
  if (draft === EMPTY_TEXT) return "";
  if (draft === "") {
    if (start === undefined || start === null) return base;
    return TEXT_KINDS.includes(input.kind) ? "" : input.nullable === true ? null : undefined;
  }
  if (isNested(base) && typeof draft === "string") return parseJson(draft) ?? draft;
  const isNumber = typeof base === "number" || isExactNumber(base);
  return isNumber && TEXT_KINDS.includes(input.kind) ? (exactNumber(draft) ?? draft) : valueOf(input, draft);
}

function withoutOwn(object, name) {
  return own(object, name) === undefined ? object : Object.fromEntries(ownEntries(object).filter(([key]) => key !== name));
}

/** A value without what only the server sets. */
function withoutPaths(value, paths) {
  return paths.reduce((left, path) => withoutPath(left, path), value);
}

function withoutPath(value, path) {
  if (!isNested(value)) return value;
  const name = path.at(0);
  const rest = path.slice(1);
  if (name === "*") return Array.isArray(value) ? value.map((one) => withoutPath(one, rest)) : value;
  const inner = own(value, name);
  if (Array.isArray(value) || inner === undefined) return value;
  return rest.length === 0 ? withoutOwn(value, name) : withOwn(value, name, withoutPath(inner, rest));
}

function isSameValue(first, second) {
  return first === second || exactJsonText(first) === exactJsonText(second);
}

/** The fields that differ. A field that is gone is null: that is how a patch removes it. */
function changesOf(base, next, isDeep) {
  const names = [...new Set([...ownEntries(base), ...ownEntries(next)].map((pair) => pair.at(0)))];
  const isObject = (value) => isNested(value) && !Array.isArray(value);
  const pairs = names.flatMap((name) => {
    const before = own(base, name);
    const after = own(next, name);
    if (isSameValue(before, after)) return [];
    if (after === undefined) return [[name, null]];
    return [[name, isDeep && isObject(before) && isObject(after) ? changesOf(before, after, true) : after]];
  });
  return Object.fromEntries(pairs);
}

/** What is wrong with a draft, as `{ place, message }`; `place` is the path of the field. What was not touched is not judged. */
function problemsOf(input, draft, place, start, isPartial) {
  const found = (message) => [{ place, message }];
  if (draft === start && (start !== undefined || isPartial === true)) return [];
  if (draft === null) return input.nullable === true || input.required !== true ? [] : found("This cannot be null.");
  const isText = typeof draft === "string";
  if ((input.kind === "json" || (isText && ["object", "map"].includes(input.kind))) && draft !== undefined && draft.trim() !== "" && parseJson(draft) === undefined) return found("This is not valid JSON.");
  const value = valueOf(input, draft);
  if (draft === "" && typeof start === "string" && TEXT_KINDS.includes(input.kind)) return textProblem(input, "").flatMap(found);
  if (value === undefined) return input.required === true ? found("This is required.") : [];
  if (isText && ["object", "map"].includes(input.kind)) return [];
  switch (input.kind) {
    case "object":
      return fieldsOf(input).flatMap((field) => problemsOf(field, own(draft, field.name), `${place}/${field.name}`, own(start, field.name), isPartial));
    case "variant":
      return problemsOf(input.alternatives.at(draft.chosen).input, draft.draft, `${place}/${draft.chosen}`, draft.start, isPartial);
    case "map":
      return draft.flatMap((entry, index) => problemsOf(itemOf(input), entry.draft, `${place}/${index}`, entry.start, isPartial));
    case "list":
      if (value.length < (input.minLength ?? 0)) return found(`At least ${input.minLength} entries are needed.`);
      if (value.length > (input.maxLength ?? Infinity)) return found(`At most ${input.maxLength} entries are allowed.`);
      return draft.flatMap((entry, index) => problemsOf(itemOf(input), entry.draft, `${place}/${index}`, entry.start, isPartial));
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

function numberProblem(input, exact) {
  const value = Number(scalarText(exact));
  if (Number.isNaN(value)) return ["This is not a number."];
  if (input.kind === "integer" && !(isExactNumber(exact) ? /^-?[0-9]+$/.test(scalarText(exact)) : Number.isInteger(value))) return ["This must be a whole number."];
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
