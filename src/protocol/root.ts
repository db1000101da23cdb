/**
 * The start of a chain of wakes. `person`, `service` and `plan` (a standing plan set by a person) are roots that a
 * person answers for; `agent` is a recurring plan that an agent set itself. `by`: the person whose words began it, or
 * who answered what nobody had begun.
 */
export type Root = { id: string; kind: "person" | "service" | "plan" | "agent"; by?: string | undefined };
