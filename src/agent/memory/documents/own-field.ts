import type { Json } from "../../../protocol/block.ts";

/** A field of a value, where it is an object that has it itself: a field may be named `constructor`. */
export const ownField = (value: Json | undefined, name: string): Json | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, name)
    ? value[name]
    : undefined;
