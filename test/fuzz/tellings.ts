import { env } from "cloudflare:workers";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { SearchQuery } from "../../src/protocol/search.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { agentStub, exported, runsOf } from "../agent/fixture.ts";
import { rowsWithAny } from "../support/rows.ts";

/** Who tells of a workspace: its spaces, its agents, and all parts of their minds. */
export type Tellers = {
  workspaceId: string;
  spaces: readonly { id: string; messages: () => Promise<unknown[]> }[];
  agents: readonly EntityRef[];
  minds: readonly EntityRef[];
};

/** Where something is told, and all that is told there. */
export type Tellings = Map<string, string>;

/** What spaces and agents answer: histories, runs with their steps, contexts, what search finds of these words, exports. */
export const tellings = async ({ workspaceId, spaces, agents, minds }: Tellers, words: string[]): Promise<Tellings> => {
  const told: Tellings = new Map();
  for (const space of spaces) told.set(`history of ${space.id}`, JSON.stringify(await space.messages()));
  for (const mind of minds) {
    const stub = env.AGENT.getByName(mind.id);
    const tell = (what: string, answer: unknown) =>
      told.set(`${what} of ${mind.name}, ${mind.id}`, JSON.stringify(answer));
    tell("context", unwrap(await stub.context(workspaceId)));
    const runs = await runsOf(workspaceId, mind);
    tell("runs", await Promise.all(runs.map(async ({ id }) => unwrap(await stub.run(workspaceId, id)))));
    const hits = [];
    for (const query of words) {
      const answer = await stub.search(workspaceId, SearchQuery.parse({ query, mode: "fts" }));
      hits.push(...unwrap(answer).items);
    }
    tell("search", hits);
  }
  for (const agent of agents) told.set(`export of ${agent.name}`, await exported(workspaceId, agent));
  return told;
};

/** Where in the rows and indexes one of the words is, but for rows that may have them; undefined where none is anywhere. */
export const rowWith = async (objects: Objects, words: string[], mayHave?: RegExp): Promise<string | undefined> => {
  for (const [name, object] of objects) {
    const found = await rowsWithAny(object, words);
    const [word = "", row] = found.find(([, each]) => !mayHave?.test(each)) ?? [];
    if (row === undefined) continue;
    const [table] = row.split(" ");
    return `${word} in ${name}, ${table}: ${row.slice(Math.max(0, row.indexOf(word) - 300)).slice(0, 500)}`;
  }
  return undefined;
};

type Objects = [name: string, object: unknown][];

/** The objects that hold what these know. */
export const objectsOf = ({ workspaceId, spaces, minds }: Tellers): Objects => [
  ...minds.map((mind): [string, unknown] => [`a mind of ${mind.name}`, agentStub(mind)]),
  ...spaces.map(({ id }): [string, unknown] => ["a space", env.SPACE.getByName(id)]),
  ["the workspace", env.WORKSPACE.getByName(workspaceId)],
];
