import type { CallToolResult, Server, ServerContext } from "@modelcontextprotocol/server";
import { ColloquyError, isLacking, problem } from "../shared/errors.ts";

import { loadedOnce } from "../shared/loaded-once.ts";
import { log } from "../shared/log.ts";
import { quoteJson, visible } from "../shared/quote.ts";
import type { AskApi, Surroundings, Toolset } from "./toolset.ts";

/**
 * MCP over Streamable HTTP, by the protocol's own library, which is evaluated at the first request. Only this file knows it.
 *
 * Invariants
 * 1. Nothing is kept between two requests: no session, no stream. So both revisions, 2026-07-28 and 2025-11-25, are served
 *    by any isolate.
 * 2. A refusal of a tool is its result, with the problem's code and remedy. The protocol's own errors are for what is no
 *    call of a tool at all.
 */
const library = loadedOnce(() => import("@modelcontextprotocol/server"));

/** The routes check what a tool is called with. */
const noValidator = {
  getValidator: (): never => {
    throw new Error("the routes validate");
  },
};

const asError = (error: unknown): ColloquyError => {
  if (error instanceof ColloquyError) return error;
  if (isLacking(error)) return new ColloquyError("unavailable", "A new release is going out: try again in a minute.");
  log.error("mcp.failed", error, {});
  return new ColloquyError("internal", "Something went wrong here. It was logged; trying again may help.");
};

/** A refusal as a tool's result: its reason and what to do about it. */
const refusalOf = (error: unknown): CallToolResult => {
  const { code, message, issues, retryAfterMs } = asError(error);
  const { detail, ...rest } = problem(code, message, issues, retryAfterMs);
  const text = quoteJson({
    code,
    detail,
    ...(rest.issues && { issues }),
    ...(rest.retryAfter && { retryAfter: rest.retryAfter }),
  });
  return { content: [{ type: "text", text }], isError: true };
};

const surroundingsOf = ({ mcpReq }: ServerContext, ask: AskApi): Surroundings => {
  const token = mcpReq._meta?.progressToken;
  let progress = 0;
  return {
    ask,
    signal: mcpReq.signal,
    progress: (message) => {
      if (token === undefined) return;
      progress += 1;
      const params = { progressToken: token, progress, message };
      mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
    },
  };
};

export type McpRequest = {
  request: Request;
  /** Its JSON, where it is some. */
  body: unknown;
  toolset: Toolset;
  ask: AskApi;
};

const newServer = async ({ toolset, ask }: McpRequest): Promise<Server> => {
  const { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, Server } = await library();
  const { resources, instructions } = toolset;
  const server = new Server(
    { name: "colloquy", title: "Colloquy", version: "1" },
    { capabilities: { tools: {}, resources: {} }, instructions, jsonSchemaValidator: noValidator },
  );

  /** A refusal of a route as the protocol's error, with the problem as its data. */
  const toldAs = (error: unknown): Error => {
    const { code, message, issues } = asError(error);
    return new ProtocolError(ProtocolErrorCode.InvalidParams, message, problem(code, message, issues));
  };

  server.setRequestHandler("tools/list", async () => {
    const tools = await Promise.try(() => toolset.list(ask)).catch((error: unknown) => {
      throw toldAs(error);
    });
    return { tools: tools.map(({ call: _, annotations, ...tool }) => ({ ...tool, annotations: { ...annotations } })) };
  });

  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const tool = toolset.find(params.name);
    if (!tool)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool of that name: see tools/list.`);
    try {
      const value = await tool.call(params.arguments ?? {}, surroundingsOf(context, ask));
      return { content: [{ type: "text", text: typeof value === "string" ? visible(value) : quoteJson(value) }] };
    } catch (error) {
      return refusalOf(error);
    }
  });

  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: resources.templates }));

  server.setRequestHandler("resources/list", async ({ params }) => {
    return resources.list(ask, params?.cursor).catch((error: unknown) => {
      throw toldAs(error);
    });
  });

  server.setRequestHandler("resources/read", async ({ params: { uri } }) => {
    const found = await resources.read(ask, uri).catch((error: unknown) => {
      if (error instanceof ColloquyError && error.code === "not_found") return undefined;
      throw toldAs(error);
    });
    if (found === undefined) throw new ResourceNotFoundError(uri);
    return { contents: [{ uri, ...found }] };
  });

  return server;
};

/** Answers one request of a client. */
export const serveMcp = async (asked: McpRequest): Promise<Response> => {
  const { createMcpHandler } = await library();
  const { fetch } = createMcpHandler(() => newServer(asked));
  const answer = await fetch(asked.request, asked.body === undefined ? {} : { parsedBody: asked.body });
  answer.headers.set("cache-control", "no-store, no-transform");
  return answer;
};
