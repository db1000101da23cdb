/** Structured logs: one JSON object a line, with the ids that let a person follow one run. Never texts, never secrets. */
type Fields = Record<string, string | number | boolean | null | undefined>;

const write = (level: "info" | "warn" | "error", event: string, fields: Fields): void => {
  console[level === "info" ? "log" : level](JSON.stringify({ level, event, ...fields }));
};

export const log = {
  info: (event: string, fields: Fields = {}): void => write("info", event, fields),
  warn: (event: string, fields: Fields = {}): void => write("warn", event, fields),
  error: (event: string, error: unknown, fields: Fields = {}): void =>
    write("error", event, {
      ...fields,
      error: error instanceof Error ? error.message : String(error),
      stack: error instanceof Error ? (error.stack ?? null) : null,
    }),
};
