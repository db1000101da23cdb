type WithoutNulls<Fields> = {
  [Key in keyof Fields as null extends Fields[Key] ? never : Key]: Fields[Key];
} & { [Key in keyof Fields as null extends Fields[Key] ? Key : never]?: NonNullable<Fields[Key]> };

/** A row as it is shown: a field that is null is left out. */
export const withoutNulls = <Fields extends object>(fields: Fields): WithoutNulls<Fields> =>
  // `Object.entries` forgets which field has which type.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)) as WithoutNulls<Fields>;
