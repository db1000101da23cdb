import { DurableObject } from "cloudflare:workers";
import { Channel } from "../../src/agent/run/channel.ts";
import type { Env } from "../../src/env/env.ts";
import { createIds } from "../../src/shared/ids.ts";
import { type Generation, generate } from "./generate.ts";

export type Speech = Generation & { workspaceId: string; spaceId: string; agentId: string };

/** An agent's mouth without its mind: says one message through the agent's own channel, into the real space. */
export class Speaker extends DurableObject<Env> {
  async speak({ workspaceId, spaceId, agentId, ...generation }: Speech): Promise<number[]> {
    const ids = createIds(this.env.SIGNING_SECRET);
    const runId = ids.mintOwned("run", agentId);
    const streamId = ids.mint("str");
    const space = this.env.SPACE.getByName(spaceId);
    const channel = new Channel(space, { workspaceId, agentId, runId });
    channel.send({ type: "active" });
    channel.send({ type: "start", streamId, toolName: "send_message", speaks: true });
    const times = await generate(generation, (text) => channel.send({ type: "delta", streamId, text }));
    const text = generation.deltas.join("");
    const messageId = ids.mintOwned("msg", spaceId);
    const root = { id: runId, kind: "person" } as const;
    const said = await space.append({ workspaceId, agentId, runId, messageId, text, root, streamId });
    if (!said.ok) throw new Error(said.problem.detail);
    await channel.end(undefined, 10_000);
    return times;
  }
}
