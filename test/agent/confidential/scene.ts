import { env } from "cloudflare:workers";
import { onTestFinished } from "vitest";
import { CreateBlock } from "../../../src/protocol/block.ts";
import type { EntityRef } from "../../../src/protocol/rpc.ts";
import { SearchQuery } from "../../../src/protocol/search.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { compartmentId } from "../../../src/shared/ids.ts";
import { installModel, type ScriptedPart, scriptedModel, step, text } from "../../support/scripted-model.ts";
import { type AgentSettings, ended, ids, openHouse, rowsIn, runsOf, told } from "../fixture.ts";

/** An agent with an open space and a confidential one, and what each of its two minds keeps. */
export const openTwoMinds = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const { workspaceId } = house;
  const [ann, ben] = [await house.person("Ann"), await house.person("Ben")];
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline", ...settings });
  const alpha = await house.space("Alpha", [ann, ben, analyst]);
  const boardId = ids.mint("spc");
  const board = { name: "Board", wakePolicy: "every_message", shareOrigin: "none", confidential: true } as const;
  unwrap(
    await env.SPACE.getByName(boardId).create({ id: boardId, workspaceId, settings: board, members: [ann, analyst] }),
  );
  const secret: EntityRef = { ...analyst, id: compartmentId(ids, analyst.id, boardId) };
  const counts = new Map<string, number>();

  /** Has a mind make these calls, one a step, in a run that is begun in its space. Answers the calls' results and the run's inputs. */
  const run = async (mind: EntityRef, ...calls: ScriptedPart[]) => {
    const model = scriptedModel([...calls.map((each) => step(each)), step(text("Done."))]);
    const restore = installModel(model);
    onTestFinished(restore);
    const spaceId = mind === analyst ? alpha.id : boardId;
    unwrap(await env.SPACE.getByName(spaceId).post(alpha.as(ann), { text: "Go" }));
    const count = (counts.get(mind.id) ?? 0) + 1;
    counts.set(mind.id, count);
    const last = (await ended(workspaceId, mind, count)).at(-1);
    await told(spaceId);
    restore();
    const results = (last?.steps ?? []).flatMap(({ toolCalls }) =>
      toolCalls.map(({ output }) => JSON.stringify(output)),
    );
    return { results, inputs: model.calls.map(({ prompt }) => prompt) };
  };

  const of = (mind: EntityRef) => {
    const stub = () => env.AGENT.getByName(mind.id);
    return {
      stub,
      create: async (block: object) =>
        unwrap(await stub().createBlock(workspaceId, CreateBlock.parse(block), "system")),
      blocks: async () => unwrap(await stub().blocks(workspaceId)),
      keep: async (content: string) =>
        unwrap(
          await stub().archive(workspaceId, ids.mintOwned("arch", mind.id), { content, metadata: {}, source: {} }),
        ),
      archival: async (limit = 100, cursor?: string) => unwrap(await stub().archival(workspaceId, { limit, cursor })),
      find: async (query: Partial<SearchQuery> & { query: string }) =>
        unwrap(await stub().search(workspaceId, SearchQuery.parse(query))),
    };
  };

  return {
    ...{ house, workspaceId, ann, ben, analyst, secret, alpha, boardId, run, of },
    open: of(analyst),
    inside: of(secret),
    runs: (mind: EntityRef) => runsOf(workspaceId, mind),
  };
};

/** Every row of every table of a mind, but its timers, which fire by themselves, and the ledger, where compartments pay. */
export const dumpOf = async (mind: EntityRef): Promise<Record<string, unknown[]>> => {
  const named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'";
  const names = (await rowsIn(mind, named))
    .map(({ name }) => String(name))
    .filter((name) => !["timers", "ledger"].includes(name));
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await rowsIn(mind, `SELECT * FROM "${name}"`)] as const)),
  );
};
