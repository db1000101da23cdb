import * as z from "zod";
import type { Principal } from "../protocol/principal.ts";
import type { SpaceRpc } from "../protocol/rpc.ts";
import type { KeyScope } from "../protocol/workspace.ts";
import { ColloquyError, type ErrorCode } from "../shared/errors.ts";
import { excerpt } from "../shared/quote.ts";
import { soundJsonIn } from "../shared/sound-json.ts";
import { type Access, accesses, admit, countPublic, isGuarded, scopesOf } from "./access.ts";
import { type AskedAgent, agentAt, askedAgent, type HttpContext, spaceAt } from "./http-context.ts";
import { forgetAnswers, idempotently, type NewId } from "./idempotent.ts";
import { askedSpace, MindQuery, mindIdOf, noteLook, requireReader } from "./mind-query.ts";
import { holdsIdsOnly, pathSchema, requireIssued } from "./path-parameters.ts";
import { misshapen } from "./problems.ts";
import { IdempotencyHeaders, idempotencyHeader } from "./route-parts.ts";

/**
 * A route's one definition says who may call it, what it takes and what it answers. Routing, validation and the OpenAPI
 * document are made from it, so what is documented is what is parsed.
 */
type Description<Query = z.ZodType, Headers = z.ZodObject, Body = z.ZodType, Answer = z.ZodType> = {
  summary: string;
  description?: string;
  access: Access;
  /** A secret key of this scope is let in too, or of one of these, beside those of `full` and, for `GET`, of `read`. */
  scope?: KeyScope | KeyScope[];
  query?: Query;
  /**
   * The route is about an agent's mind. With `?space=` it is about what the agent has from that confidential space.
   * `told`: it is no `GET`, and its answer tells more than was sent.
   */
  mind?: true | "told";
  headers?: Headers;
  /** Read as JSON. */
  body?: Body;
  /** A body that the handler reads itself, by media type: only the OpenAPI document uses the schemas. */
  ownBody?: Record<string, { schema: z.ZodType }>;
  /** It takes an `Idempotency-Key`. `sealed`: its answer holds a secret, and is stored sealed. */
  idempotent?: true | "sealed";
  /** The JSON that it answers, and its description. If left out, it answers 204 without a body. */
  answers?: [Answer, string];
  /** 200, if left out. */
  status?: 201 | 202;
  /** What it answers as a `Response` of its own. */
  responses?: Record<number, { description: string; content?: Record<string, { schema: z.ZodType }> }>;
  /** The problems that it answers, besides those of every guarded route, of its body and of its `Idempotency-Key`. */
  problems?: ErrorCode[];
};

export type Route = Description & {
  method: string;
  path: string;
  tag: string;
  params: z.ZodObject;
  respond(context: HttpContext): Promise<Response>;
};

type NamesIn<Address> = Address extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;

/** One request, parsed. */
type Call<Address, Query, Headers, Body, Answer> = {
  context: HttpContext;
  params: Record<NamesIn<Address>, string>;
  query: z.output<Query>;
  headers: z.output<Headers>;
  body: z.output<Body>;
  principal: Principal;
  workspaceId: string;
  /** The agent, or with `?space=` its compartment, and the space that the path names. */
  agent: "agentId" extends NamesIn<Address> ? AskedAgent : undefined;
  space: "spaceId" extends NamesIn<Address> ? SpaceRpc : undefined;
  /** The owner of the ids that the asked mind makes. */
  mindId: string;
  idempotencyKey: string | undefined;
  /** Makes the answer once for each `Idempotency-Key` of this caller at this address; without a key, each time. */
  once(make: (newId: NewId) => Promise<z.output<Answer>>): Promise<z.output<Answer>>;
};

const jsonType = /^application\/(?:[a-z.-]+\+)?json(?:;\s*[a-z0-9-]+=[^;]+)*$/i;

/** A body as JSON, for a schema. A request without a body and content type has an empty object. */
const bodyIn = ({ req }: HttpContext, text: string, json: unknown): unknown => {
  const type = req.header("content-type");
  if (type === undefined && text === "") return {};
  if (type === undefined || !jsonType.test(type)) {
    throw new ColloquyError("invalid_json", "Send the body as JSON, with content-type: application/json.");
  }
  if (json !== undefined) return json;
  throw new ColloquyError("invalid_json", "The body is not JSON: check quotes, commas and brackets.");
};

const mostNames = 5;
const nameCharacters = 64;

const queryIn = ({ req }: HttpContext): unknown =>
  Object.fromEntries(Object.entries(req.queries()).map(([name, all]) => [name, all.length === 1 ? all[0] : all]));

/** Refuses names in a query that its schema does not have. */
const requireKnown = ({ req }: HttpContext, known: string[]): void => {
  const unknown = Object.keys(req.queries()).filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  const names = unknown.slice(0, mostNames).map((name) => excerpt(name, nameCharacters));
  const takes = known.length === 0 ? "this address takes none" : `it may have ${known.join(", ")}`;
  const message = `has unknown fields, leave them out: ${names.join(", ")}; ${takes}`;
  throw new ColloquyError("invalid_request", `The query ${message}.`, { issues: [{ path: "", message }] });
};

const headersIn = ({ req }: HttpContext, names: string[]): unknown =>
  Object.fromEntries(names.map((name) => [name, req.header(name)]));

const parse = (schema: z.ZodType, value: unknown, where: string): unknown => {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw misshapen(parsed.error, where);
  return parsed.data;
};

/** The routes of one kind of thing, under one tag of the OpenAPI document. */
export class Resource {
  readonly routes: Route[] = [];
  readonly #tag: string;

  constructor(tag: string) {
    this.#tag = tag;
  }

  /** Adds a route at an address such as `GET /v1/agents/{agentId}`. */
  route<
    Address extends string,
    Query extends z.ZodType,
    Headers extends z.ZodObject,
    Body extends z.ZodType,
    Answer extends z.ZodType,
  >(
    address: Address,
    {
      params: described,
      handle,
      ...description
    }: Description<Query, Headers, Body, Answer> & {
      /** Schemas of path parameters in place of the usual ones. */
      params?: Record<string, z.ZodType<string>>;
      handle(call: Call<Address, Query, Headers, Body, Answer>): Promise<z.output<Answer> | Response>;
    },
  ): void {
    const [method = "", path = ""] = address.split(" ");
    const { access, query, body, answers, idempotent, status = 200 } = description;
    const headers = idempotent ? IdempotencyHeaders.extend(description.headers?.shape ?? {}) : description.headers;
    const params = pathSchema(path, described);
    const guarded = isGuarded(access);
    const scopes = scopesOf(method, description.scope);
    const idsOnly = guarded && holdsIdsOnly(params);
    const inQuery = [
      ...(query instanceof z.ZodObject ? Object.keys(query.shape) : []),
      ...(description.mind ? Object.keys(MindQuery.shape) : []),
      ...("queryToken" in accesses[access] ? ["token"] : []),
    ];
    // The agent's own address tells its config, and nothing that it was told.
    const tellsOfMind =
      description.mind === "told" || (description.mind && method === "GET" && path !== "/v1/agents/{agentId}");
    const headerNames = Object.keys(headers?.shape ?? {});

    const respond = async (context: HttpContext): Promise<Response> => {
      const { req } = context;
      const inPath: Record<string, string> = req.param();
      const { agentId, spaceId } = inPath;
      let mindId = agentId ?? "";
      let mindOf: string | undefined;
      if (guarded) {
        await admit(context, access, scopes);
        if (description.mind && req.url.includes("?")) mindOf = askedSpace(queryIn(context));
        if (mindOf !== undefined) mindId = mindIdOf(context, mindId, mindOf);
        requireIssued(context.get("ids"), inPath, mindId);
      } else if (access !== "signature") countPublic(context);
      // A handler that reads the body itself checks it as it reads. To read a body that is not there takes time too.
      const isRead = (guarded || body) && !description.ownBody && req.raw.body;
      const text = isRead ? await req.text() : "";
      const json = text === "" ? undefined : soundJsonIn(text);
      // Open routes, and hooks, get queries that other systems add.
      if (guarded && req.url.includes("?")) requireKnown(context, inQuery);
      if (mindOf !== undefined) await requireReader(context, mindOf);
      const principal = context.get("principal");
      const parsed = {
        query: query && parse(query, queryIn(context), "query"),
        params: idsOnly ? inPath : parse(params, inPath, "path"),
        headers: headers && parse(headers, headersIn(context, headerNames), "headers"),
        body: body && parse(body, bodyIn(context, text, json), "body"),
      };
      // Before it is deleted: a second try, where this fails, would find nothing to delete.
      if (description.mind && method === "DELETE") await forgetAnswers(context);
      const answering = Promise.try(handle, {
        ...parsed,
        context,
        principal,
        workspaceId: principal?.workspaceId,
        agent: agentId === undefined ? undefined : askedAgent(agentAt(context, mindId), principal?.workspaceId),
        mindId,
        space: spaceId === undefined ? undefined : spaceAt(context, spaceId),
        idempotencyKey: req.header(idempotencyHeader),
        once: (make) => {
          if (!answers) throw new Error(`${address} has no answer to give again`);
          const request = mindOf === undefined ? parsed.body : { body: parsed.body, space: mindOf };
          const sealed = idempotent === "sealed";
          return idempotently(context, { body: request, schema: answers[0], status, sealed }, make);
        },
        // The definition's own schemas parsed it, so it has their types.
      } as Call<Address, Query, Headers, Body, Answer>);
      const noted = (): Promise<void> => noteLook(context, agentId ?? "");
      const answer = await answering.catch(async (error: unknown) => {
        // Other refusals may tell of what is there.
        const isOfNothing = error instanceof ColloquyError && error.code === "not_found";
        if (description.mind === "told" && mindOf === undefined && !isOfNothing) await noted();
        throw error;
      });
      if (tellsOfMind && mindOf === undefined) await noted();
      if (answer instanceof Response) return answer;
      if (!answers) return context.body(null, 204);
      return context.body(JSON.stringify(answer), status, { "content-type": "application/json" });
    };
    const route = { ...description, method, path, tag: this.#tag, params, respond };
    this.routes.push(headers ? { ...route, headers } : route);
  }
}
