import type { Env } from "../../src/env/env.ts";
import {
  default as app,
  Agent as RealAgent,
  Person as RealPerson,
  Space as RealSpace,
  Workspace as RealWorkspace,
} from "../../src/worker.ts";
import { count, counted, countStatements, takeCounts } from "./counting.ts";
import { fillCycles, fillLog, leaveWaiting } from "./fill.ts";
import { fillConversation, type Line } from "./fill-conversation.ts";
import { fillSearch, plainVectors, plainWords } from "./fill-search.ts";
import { fillShown, fillWaiting } from "./fill-waiting.ts";
import type { Speaker, Speech } from "./speaker.ts";

/**
 * The product as it is, behind a worker that counts what it costs and lets a bench speak into a space. Nothing of the
 * product is replaced: requests to objects, alarms and SQLite's rows are counted where the platform hands them out.
 */
export { Endpoint } from "../../src/worker.ts";
export { Speaker } from "./speaker.ts";

type BenchEnv = {
  SPEAKER: DurableObjectNamespace<Speaker>;
  SPACE: DurableObjectNamespace<Space>;
  AGENT: DurableObjectNamespace<Agent>;
} & Env;

type Filling = { spaceId: string; name: string; agentIds: string[]; messages: number };

type Waiting = { agentId: string; spaceId: string; copies: number };

type PlainQuery = { agentId: string; kind: "words" | "vectors"; query: string; limit: number };

type Living = { agentId: string; cycles: number; inWindow: number };

export class Workspace extends RealWorkspace {
  constructor(ctx: DurableObjectState, env: Env) {
    countStatements(ctx.storage);
    super(ctx, counted(env));
  }
}

export class Space extends RealSpace {
  constructor(ctx: DurableObjectState, env: Env) {
    countStatements(ctx.storage);
    super(ctx, counted(env));
  }

  fill(messages: number): string {
    return fillLog(this.ctx.storage, messages);
  }

  converse(lines: Line[]): string[] {
    return fillConversation(this.ctx.storage, lines);
  }

  fillShown(copies: number): number {
    return fillShown(this.ctx.storage, copies);
  }

  /** Begins anew: what it remembers is not what was written past it. Never answers. */
  async restart(): Promise<void> {
    await this.ctx.storage.sync();
    this.ctx.abort("it was filled");
  }

  override alarm(): Promise<void> {
    count("request", "the alarm of a space");
    return super.alarm();
  }

  override webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): Promise<void> {
    count("request", "a frame from a socket to a space");
    return super.webSocketMessage(socket, data);
  }
}

export class Agent extends RealAgent {
  constructor(ctx: DurableObjectState, env: Env) {
    countStatements(ctx.storage);
    super(ctx, counted(env));
  }

  live(cycles: number, inWindow: number): void {
    fillCycles(this.ctx.storage, cycles, inWindow);
  }

  fillSearch(passages: number): void {
    fillSearch(this.ctx.storage, passages);
  }

  plain(kind: "words" | "vectors", query: string, limit: number): number {
    return kind === "words" ? plainWords(this.ctx.storage, query, limit) : plainVectors(this.ctx.storage, query);
  }

  size(): number {
    return this.ctx.storage.sql.databaseSize;
  }

  wait(spaceName: string, newest: string): void {
    leaveWaiting(this.ctx.storage, spaceName, newest);
  }

  fillWaiting(copies: number, cursor: number): void {
    fillWaiting(this.ctx.storage, copies, cursor);
  }

  override alarm(): Promise<void> {
    count("request", "the alarm of an agent");
    return super.alarm();
  }
}

export class Person extends RealPerson {
  constructor(ctx: DurableObjectState, env: Env) {
    countStatements(ctx.storage);
    super(ctx, counted(env));
  }

  override webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): Promise<void> {
    count("request", "a frame from a socket to a person");
    return super.webSocketMessage(socket, data);
  }

  override alarm(): Promise<void> {
    count("request", "the alarm of a person");
    return super.alarm();
  }
}

/** A space that was filled begins anew. */
const filled = async <T>(
  { SPACE }: BenchEnv,
  spaceId: string,
  fill: (space: DurableObjectStub<Space>) => Promise<T>,
) => {
  const value = await fill(SPACE.getByName(spaceId));
  await SPACE.getByName(spaceId)
    .restart()
    .catch(() => undefined);
  return value;
};

export default {
  async fetch(request, env, context): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/bench/speak") {
      const speech = await request.json<Speech>();
      return Response.json(await env.SPEAKER.getByName(speech.agentId).speak(speech));
    }
    if (pathname === "/bench/fill") {
      const { spaceId, name, agentIds, messages } = await request.json<Filling>();
      const newest = await filled(env, spaceId, (space) => space.fill(messages));
      for (const agentId of agentIds) await env.AGENT.getByName(agentId).wait(name, newest);
      return Response.json({});
    }
    if (pathname === "/bench/live") {
      const { agentId, cycles, inWindow } = await request.json<Living>();
      await env.AGENT.getByName(agentId).live(cycles, inWindow);
      return Response.json({});
    }
    if (pathname === "/bench/waiting") {
      const { agentId, spaceId, copies } = await request.json<Waiting>();
      const cursor = await filled(env, spaceId, (space) => space.fillShown(copies));
      await env.AGENT.getByName(agentId).fillWaiting(copies, cursor);
      return Response.json({});
    }
    if (pathname === "/bench/converse") {
      const { spaceId, lines } = await request.json<{ spaceId: string; lines: Line[] }>();
      return Response.json(await filled(env, spaceId, (space) => space.converse(lines)));
    }
    if (pathname === "/bench/search") {
      const { agentId, passages } = await request.json<{ agentId: string; passages: number }>();
      await env.AGENT.getByName(agentId).fillSearch(passages);
      return Response.json({});
    }
    if (pathname === "/bench/plain") {
      const { agentId, kind, query, limit } = await request.json<PlainQuery>();
      return Response.json(await env.AGENT.getByName(agentId).plain(kind, query, limit));
    }
    if (pathname === "/bench/size") {
      const { agentId } = await request.json<{ agentId: string }>();
      return Response.json({ bytes: await env.AGENT.getByName(agentId).size() });
    }
    if (pathname === "/bench/counts") return Response.json(takeCounts());
    return app.fetch(request, counted(env), context);
  },
} satisfies ExportedHandler<BenchEnv>;
