/**
 * What people write and agents answer under load. A command names the one agent that is to do it; the others read it
 * and stay silent. Its answer is another sentence, so that no answer is taken for a command.
 */
export type Verb = "say" | "refund" | "credit";

export type Command = { id: string; verb: Verb; agent: string };

/** The outcome of a command that an agent tells; `unknown` where it was told that the outcome is not known. */
export type Said = "said" | "refunded" | "unknown" | "failed";

export const commandText = ({ id, verb, agent }: Command): string => `#${id} ${verb} ${agent}`;

export const commandsIn = (text: string): Command[] =>
  [...text.matchAll(/#([\w-]+) (say|refund|credit) (\w+)/g)].map(([, id = "", verb, agent = ""]) => ({
    id,
    verb: verb as Verb,
    agent,
  }));

const filler = Array.from({ length: 8 }, (_, index) => `word${index} `);

/** The answer in the pieces in which the model writes it. */
export const answerPieces = (id: string, said: Said): string[] => ["done ", `${id} `, `${said} `, ...filler];

export const answerIn = (text: string): { id: string; said: Said } | undefined => {
  const [, id, said] = /^done ([\w-]+) (said|refunded|unknown|failed) /.exec(text) ?? [];
  return id === undefined ? undefined : { id, said: said as Said };
};
