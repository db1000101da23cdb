import fc from "fast-check";

/** Input from a hostile or careless sender: texts, JSON, and valid JSON with something wrong in it. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

const prototypeNames = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "then"];

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    ...prototypeNames,
    "",
    " ",
    "\u0000",
    "a\u0000b",
    "\ud800",
    "x\udc00y",
    "\ufeff",
    "\u202egnp.exe",
    "\u200b\u200d\u2060",
    "null",
    "undefined",
    "NaN",
    "-1",
    "1e999",
    "9007199254740993",
    "' OR 1=1 --",
    '"; DROP TABLE log; --',
    "%",
    "%00",
    "../../etc/passwd",
    `${"$"}{secret.x}`,
    "{{input.__proto__.x}}",
    "{{payload.constructor}}",
    "[SEEN]",
    "</space>",
    "@everyone",
    "sk_x",
    "data:text/html,x",
    "x".repeat(70),
    "ü".repeat(20_000),
    "\n".repeat(500),
    "z\u0301".repeat(400),
    "👩‍👩‍👧‍👦".repeat(20),
  ),
  fc.string({ maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)), maxLength: 20 }),
);

const hostileNumber = fc.oneof(
  fc.constantFrom(0, -0, -1, 0.1, 1e308, -1e308, 5e-324, 2 ** 31, 2 ** 53, 2 ** 63, 1e21, 1e15),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

const nested = (depth: number): Json => {
  let held: Json = 1;
  for (let level = 0; level < depth; level += 1) held = level % 2 ? [held] : { a: held };
  return held;
};

export const hostileJson: fc.Arbitrary<Json> = fc.oneof(
  { weight: 4, arbitrary: hostileText },
  { weight: 3, arbitrary: hostileNumber },
  { weight: 3, arbitrary: fc.constantFrom<Json>(null, true, false, [], {}, [[]], [null], { "": "" }) },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }).map((value): Json => JSON.parse(JSON.stringify(value))) },
  { weight: 1, arbitrary: fc.constantFrom(60, 63, 64, 65, 2000).map(nested) },
  { weight: 1, arbitrary: fc.integer({ min: 50, max: 3000 }).map((length) => Array.from({ length }, () => ({}))) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...prototypeNames).map((name): Json => JSON.parse(`{"${name}":{"a":1},"b":2}`)),
  },
);

type Place = { holder: Json[] | { [name: string]: Json }; name: string };

const placesIn = (value: Json): Place[] => {
  const places: Place[] = [];
  const walk = (held: Json, depth: number): void => {
    if (typeof held !== "object" || held === null || depth > 12 || places.length > 400) return;
    for (const name of Object.keys(held)) {
      places.push({ holder: held, name });
      walk(Object.getOwnPropertyDescriptor(held, name)?.value, depth + 1);
    }
  };
  walk(value, 0);
  return places;
};

const put = (holder: Place["holder"], name: string, value: Json): void => {
  Object.defineProperty(holder, name, { value, configurable: true, enumerable: true, writable: true });
};

type Change = { at: number; how: "replace" | "remove" | "add" | "repeat" | "wrap"; name: string; value: Json };

const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(),
  how: fc.constantFrom("replace", "replace", "replace", "remove", "add", "repeat", "wrap"),
  name: fc.oneof(fc.constantFrom(...prototypeNames, "id", "type", "x"), hostileText),
  value: hostileJson,
});

const changed = (value: Json, { at, how, name, value: hostile }: Change): Json => {
  const copy: Json = JSON.parse(JSON.stringify(value));
  const places = placesIn(copy);
  const place = places[at % Math.max(places.length, 1)];
  if (!place) return how === "add" && typeof copy === "object" && copy !== null ? { [name]: hostile } : hostile;
  const { holder } = place;
  const old: Json = Object.getOwnPropertyDescriptor(holder, place.name)?.value;
  if (how === "replace") put(holder, place.name, hostile);
  else if (how === "wrap") put(holder, place.name, [old]);
  else if (how === "remove" && !Array.isArray(holder)) Reflect.deleteProperty(holder, place.name);
  else if (how === "repeat" && Array.isArray(holder)) holder.push(old, old);
  else if (Array.isArray(holder)) holder.push(hostile);
  else put(holder, name, hostile);
  return copy;
};

/** Valid JSON in which one to three things are not as they should be. */
export const mutated = (valid: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc
    .tuple(valid, fc.array(change, { minLength: 1, maxLength: 3 }))
    .map(([value, changes]) => changes.reduce(changed, value));

/** JSON as text, in which the text is wrong: cut, with characters in between, with a key twice, in another order. */
export const broken = (valid: fc.Arbitrary<Json>): fc.Arbitrary<string> =>
  fc
    .tuple(
      valid,
      fc.constantFrom("cut", "insert", "twice", "trailing", "numbers", "spaces", "bom"),
      fc.nat(),
      hostileText,
    )
    .map(([value, how, at, more]) => {
      const text = JSON.stringify(value);
      const place = at % Math.max(text.length, 1);
      if (how === "cut") return text.slice(0, place);
      if (how === "insert") return text.slice(0, place) + more + text.slice(place);
      if (how === "twice") return text.startsWith("{") ? `{"text":1,"name":[],${text.slice(1)}` : text + text;
      if (how === "trailing") return `${text}${more}`;
      if (how === "numbers") return text.replaceAll(/\d+/g, "1e400");
      if (how === "spaces") return " ".repeat(2000) + text;
      return `\ufeff${text}`;
    });
