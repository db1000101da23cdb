/** The kinds of counts: requests to an object, rows that SQLite read, rows that it wrote. Setting an alarm writes a row. */
export type Kind = "request" | "read" | "written";

/** How often each kind was counted, by what it was. */
export type Counts = Record<Kind, Record<string, number>>;
