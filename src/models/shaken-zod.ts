import * as zod from "zod";

/**
 * `zod/v4` in the upload: see `[alias]` in wrangler.toml. esbuild keeps all of a namespace that is imported as `{ z }`,
 * with sixty languages. Here `z` holds what the one library uses that imports it so; it throws as it loads if one lacks.
 */
export * from "zod";
export const z = {
  any: zod.any,
  array: zod.array,
  boolean: zod.boolean,
  enum: zod.enum,
  literal: zod.literal,
  looseObject: zod.looseObject,
  number: zod.number,
  object: zod.object,
  record: zod.record,
  string: zod.string,
  union: zod.union,
  unknown: zod.unknown,
};
