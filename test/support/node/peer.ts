import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { readToken } from "../../../src/client/credentials.ts";
import type { Entity } from "../../../src/protocol/entity.ts";
import { ClientFrame, pingText, pongText } from "../../../src/protocol/events.ts";
import type { LineEvent } from "../../../src/protocol/line.ts";
import { PostMessage, ReadMark } from "../../../src/protocol/message.ts";
import { CreateSpace } from "../../../src/protocol/space.ts";
import { ToolAnswer } from "../../../src/protocol/tool-call.ts";
import { type ErrorCode, problem } from "../../../src/shared/errors.ts";
import { ids, PeerSpace } from "./peer-space.ts";

export { ids, PeerSpace } from "./peer-space.ts";

/**
 * The server in tests of the client SDK: Colloquy's protocol over real HTTP and real WebSockets, in memory. A test makes
 * it drop connections, forget its log, refuse requests and repeat events.
 */
export type Peer = {
  url: string;
  spaces: Map<string, PeerSpace>;
  entity(type: Entity["type"], name: string): Entity;
  /** A token that this peer accepts; its signature is not real. */
  token(entity: Entity, lifeMs?: number): string;
  createSpace(name: string, members: Entity[]): PeerSpace;
  /** While set, every request and upgrade is refused with this code. */
  refuses: ErrorCode | null;
  /** While set, no socket opens, and each space says so. */
  isSuspended: boolean;
  /** Sends a frame on all lines of a person; their welcomes tell the spaces as they are. */
  tellLine(entity: Entity, event: LineEvent): void;
  dropLines(): void;
  /** The cursor of each requested upgrade. */
  openings: (number | null)[];
  /** The number of answered pings. */
  pings: number;
  stop(): Promise<void>;
};

const workspaceId = ids.mint("wsp");

const base64Url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

const bodyOf = async (request: IncomingMessage): Promise<unknown> => {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text === "" ? null : JSON.parse(text);
};

export const startPeer = async (port = 0): Promise<Peer> => {
  const entities = new Map<string, Entity>();
  const sockets = new WebSocketServer({ noServer: true });
  const lines = new Map<WebSocket, string>();

  const refuse = (response: ServerResponse, code: ErrorCode, detail: string): void => {
    const body = problem(code, detail);
    response.writeHead(body.status, { "content-type": "application/problem+json" }).end(JSON.stringify(body));
  };
  const answer = (response: ServerResponse, body: unknown, status = 200): void => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };

  /** The entity of a token, or the code of its refusal. */
  const bearer = (token: string | null): Entity | ErrorCode => {
    const claims = token === null ? null : readToken(token);
    const entity = claims && entities.get(claims.entityId);
    if (!entity) return "unauthorized";
    return claims.expiresAt <= Date.now() ? "token_expired" : entity;
  };

  const withMembers = (space: PeerSpace) => ({
    ...space.space,
    members: [...space.members.values()],
    ...(peer.isSuspended && { suspended: true }),
  });

  const answerSpace = async (
    request: IncomingMessage,
    response: ServerResponse,
    { caller, space, rest, url }: { caller: Entity; space: PeerSpace; rest: string; url: URL },
  ): Promise<void> => {
    const route = `${request.method} ${rest}`;
    if (route === "GET ") return answer(response, { space: withMembers(space) });
    if (route === "GET messages") {
      const limit = Number(url.searchParams.get("limit") ?? 50);
      const before = Number(url.searchParams.get("before") ?? Number.POSITIVE_INFINITY);
      const found = space.messages.filter((message) => message.seq < before);
      const items = found.slice(-limit);
      const nextCursor = found.length > items.length ? String(items[0]?.seq) : null;
      return answer(response, { items, nextCursor });
    }
    if (route === "POST messages") {
      const { message, created } = space.post(caller, PostMessage.parse(await bodyOf(request)));
      return answer(response, { message }, created ? 201 : 200);
    }
    if (route === "POST read") {
      space.read(caller.id, ReadMark.parse(await bodyOf(request)).messageId);
      return answer(response, {});
    }
    const [, toolCallId] = /^POST tool-calls\/([^/]+)\/result$/.exec(route) ?? [];
    if (toolCallId !== undefined) {
      const given = ToolAnswer.parse(await bodyOf(request));
      const message = space.answer(toolCallId, "result" in given ? given.result : given.error);
      if (message) return answer(response, { message });
      return refuse(response, "conflict", "Somebody has answered it already.");
    }
    if (request.method === "DELETE" && rest === `members/${caller.id}`) {
      space.leave(caller.id);
      response.writeHead(204).end();
      return;
    }
    refuse(response, "not_found", "There is no such address.");
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (peer.refuses) return refuse(response, peer.refuses, "The peer was told to refuse.");
    const url = new URL(request.url ?? "/", peer.url);
    const caller = bearer(request.headers.authorization?.replace("Bearer ", "") ?? null);
    if (typeof caller === "string") return refuse(response, caller, "Sign in again.");
    const [, , kind, id, ...rest] = url.pathname.split("/");
    if (kind === "spaces" && id === undefined && request.method === "GET") {
      const own = [...peer.spaces.values()].filter((space) => space.members.has(caller.id));
      return answer(response, { items: own.map((space) => space.item(caller.id)), nextCursor: null });
    }
    if (kind === "spaces" && id === undefined && request.method === "POST") {
      const input = CreateSpace.parse(await bodyOf(request));
      const others = input.members.flatMap(({ entityId }) => entities.get(entityId) ?? []);
      return answer(response, { space: withMembers(peer.createSpace(input.name, [caller, ...others])) }, 201);
    }
    if (kind === "entities" && id === undefined)
      return answer(response, { items: [...entities.values()], nextCursor: null });
    if (kind === "entities" && id !== undefined) {
      const entity = entities.get(id);
      return entity ? answer(response, { entity }) : refuse(response, "not_found", "There is no such entity.");
    }
    const space = peer.spaces.get(id ?? "");
    if (kind !== "spaces" || !space?.members.has(caller.id)) {
      return refuse(response, "not_found", "There is no such space here.");
    }
    return answerSpace(request, response, { caller, space, rest: rest.join("/"), url });
  };

  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const url = new URL(request.url ?? "/", peer.url);
    const cursor = url.searchParams.get("cursor");
    const caller = bearer(url.searchParams.get("token"));
    const space = peer.spaces.get(url.pathname.split("/")[3] ?? "");
    peer.openings.push(cursor === null ? null : Number(cursor));
    const isLine = url.pathname === "/v1/stream";
    const isRefused = peer.refuses || peer.isSuspended || typeof caller === "string";
    if (isRefused || (!isLine && !space?.members.has(caller.id))) {
      socket.end("HTTP/1.1 401 Unauthorized\r\n\r\n");
      return;
    }
    if (!space) {
      sockets.handleUpgrade(request, socket, head, (opened) => openLine(opened, caller));
      return;
    }
    sockets.handleUpgrade(request, socket, head, (opened) => {
      space.connect(opened, caller, cursor === null ? null : Number(cursor));
      opened.on("message", (data) => receive(opened, space, caller, String(data)));
    });
  };

  const openLine = (socket: WebSocket, { id, type, name }: Entity): void => {
    lines.set(socket, id);
    const own = [...peer.spaces.values()].filter(({ members }) => members.has(id));
    const spaces = own.map((each) => each.summary(id));
    socket.send(JSON.stringify({ type: "welcome", you: { id, type, name }, spaces, needsYou: [], cursor: 0 }));
    socket.on("message", (data) => {
      if (String(data) === pingText) socket.send(pongText);
    });
    socket.on("close", () => lines.delete(socket));
  };

  const receive = (socket: WebSocket, space: PeerSpace, caller: Entity, text: string): void => {
    if (text === pingText) {
      peer.pings += 1;
      socket.send(pongText);
      return;
    }
    const value: unknown = JSON.parse(text);
    const frame = ClientFrame.safeParse(value);
    if (frame.success) space.handle(socket, caller, frame.data);
    else socket.send(JSON.stringify({ ...problem("bad_frame", "The frame cannot be understood."), type: "error" }));
  };

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => refuse(response, "invalid_request", String(error)));
  });
  server.on("upgrade", upgrade);
  await new Promise<void>((listening) => server.listen(port, "127.0.0.1", listening));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the peer does not listen on a port");

  const peer: Peer = {
    url: `http://127.0.0.1:${address.port}`,
    spaces: new Map(),
    refuses: null,
    isSuspended: false,
    tellLine: ({ id }, event) => {
      for (const [socket, owner] of lines) if (owner === id) socket.send(JSON.stringify(event));
    },
    dropLines: () => {
      for (const socket of lines.keys()) socket.terminate();
    },
    openings: [],
    pings: 0,
    entity: (type, name) => {
      const entity: Entity = { id: ids.mint("ent"), type, name, role: "member", createdAt: new Date().toISOString() };
      entities.set(entity.id, entity);
      return entity;
    },
    token: (entity, lifeMs = 3_600_000) => {
      const claims = { sub: entity.id, wsp: workspaceId, exp: (Date.now() + lifeMs) / 1000 };
      return [base64Url({ alg: "none" }), base64Url(claims), "peer"].join(".");
    },
    createSpace: (name, members) => {
      const [creator] = members;
      if (!creator) throw new Error("a space needs a member");
      const space = new PeerSpace(name, creator);
      for (const member of members) space.join(member);
      peer.spaces.set(space.space.id, space);
      return space;
    },
    stop: async () => {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
  return peer;
};
