// Values that fit a model of the normalised specification: the same for the same model and number, different for
// different numbers, so that rows can be told apart.

const ROWS = 100;
const ATTEMPTS = 5_000;

/** Texts of a pattern, the example first: its digits count on (or its letters, where it has no digits). */
function allLike(pattern, example) {
  let expression;
  try {
    expression = new RegExp(pattern, "u");
  } catch {
    return [example];
  }
  const [places, symbols] = /[0-9]/.test(example) ? [/[0-9]/g, "0123456789"] : [/[a-z]/g, "abcdefghijklmnopqrstuvwxyz"];
  const base = BigInt(symbols.length);
  const digits = example.match(places) ?? [];
  const start = digits.reduce((sum, digit) => sum * base + BigInt(symbols.indexOf(digit)), 0n);
  const found = new Set([example]);
  for (let step = 1n; step < ATTEMPTS && found.size < ROWS; step += 1n) {
    let rest = start + step;
    const next = digits.map(() => {
      const digit = symbols[Number(rest % base)];
      rest /= base;
      return digit;
    });
    const text = example.replace(places, () => next.pop());
    if (expression.test(text)) found.add(text);
  }
  return [...found];
}

const alike = new Map();
function likeExample(pattern, example, number) {
  const key = JSON.stringify([pattern, example]);
  if (!alike.has(key)) alike.set(key, allLike(pattern, example));
  return alike.get(key)[number % alike.get(key).length];
}

export function sampler(spec) {
  const models = new Map(spec.models.map((model) => [model.name, model]));

  function text(model, name, number) {
    // What must look a certain way is like the specification's example.
    if (model.limits?.pattern !== undefined && typeof model.example === "string") return likeExample(model.limits.pattern, model.example, number);
    switch (model.format) {
      case "date-time":
        return new Date(Date.UTC(2026, 0, 1 + (number % 300), 12)).toISOString();
      case "date":
        return new Date(Date.UTC(2026, 0, 1 + (number % 300))).toISOString().slice(0, 10);
      case "time":
        return "12:00:00Z";
      case "email":
        return `person${number + 1}@example.com`;
      case "uri":
      case "url":
        return `https://example.com/${name}/${number + 1}`;
      case "uuid":
        return `00000000-0000-4000-8000-${String(number + 1).padStart(12, "0")}`;
      case "byte":
        return "ZHJhZ29tYW4=";
      default:
        return `${name || "value"} ${number + 1}`;
    }
  }

  function amount(model, number) {
    const { minimum, maximum } = model.limits ?? {};
    const least = minimum ?? (maximum === undefined ? 1 : maximum - 1000);
    const value = least + number;
    return maximum === undefined ? value : Math.min(value, maximum);
  }

  // `names` are the models on the way here: a model within itself ends.
  function sample(model, number, name = "", names = []) {
    if (model === undefined || model === null) return null;
    if (model.type === "reference") {
      const found = models.get(model.reference);
      if (found === undefined || names.filter((one) => one === model.reference).length > 0) return null;
      return sample(found, number, name || found.name, [...names, model.reference]);
    }
    if (names.length > 14) return null;
    switch (model.type) {
      case "object": {
        const out = {};
        for (const [key, inner] of Object.entries(model.properties ?? {})) {
          Object.defineProperty(out, key, { value: sample(inner, number, key, [...names, ""]), enumerable: true, writable: true, configurable: true });
        }
        if (model.values !== undefined) out.one = sample(model.values, number, "one", [...names, ""]);
        return out;
      }
      case "array": {
        const one = sample(model.items, number, name, [...names, ""]);
        return one === null ? [] : [one];
      }
      case "enum":
        return model.enumValues[number % model.enumValues.length];
      case "union": {
        const index = number % model.unionOf.length;
        const value = sample(model.unionOf[index], number, name, [...names, ""]);
        const { property, mapping } = model.discriminator ?? {};
        if (property !== undefined && value !== null && typeof value === "object") {
          const wanted = model.unionOf[index].reference;
          const told = Object.entries(mapping ?? {}).find(([, target]) => target === wanted)?.[0] ?? wanted;
          if (told !== undefined) value[property] = told;
        }
        return value;
      }
      case "integer":
        return Math.trunc(amount(model, number));
      case "number":
        return amount(model, number) + 0.5;
      case "boolean":
        return number % 2 === 0;
      case "null":
        return null;
      case "string":
        return text(model, name, number);
      case "file":
        return "file";
      default:
        return `any ${number + 1}`;
    }
  }
  return sample;
}
