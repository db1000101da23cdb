import type { AgentRpc } from "../protocol/agent-rpc.ts";
import type { PersonRpc } from "../protocol/person-rpc.ts";
import type { EndpointRpc, SpaceRpc, WorkspaceRpc } from "../protocol/rpc.ts";
import type { Outcome } from "../shared/errors.ts";

/** A namespace of actors, seen only through the RPC interface that they promise. */
export type ActorNamespace<Rpc> = {
  getByName(name: string): Rpc & { fetch(request: Request): Promise<Response> };
  /** As the object itself calls it: `ctx.id`. */
  idFromName(name: string): { toString(): string };
};

/** Methods of an RPC as functions of what serves them. What answers null returns nothing. */
export type Served<Rpc, Services> = {
  [Name in keyof Rpc]: Rpc[Name] extends (...args: infer Args) => Promise<Outcome<infer Value>>
    ? (services: Services, ...args: Args) => null extends Value ? void : Value
    : never;
};

/** The worker's bindings. Actors meet each other only through these interfaces, never by importing each other. */
export type Env = {
  WORKSPACE: ActorNamespace<WorkspaceRpc>;
  SPACE: ActorNamespace<SpaceRpc>;
  AGENT: ActorNamespace<AgentRpc>;
  PERSON: ActorNamespace<PersonRpc>;
  ENDPOINT: ActorNamespace<EndpointRpc>;
  AI?: Ai;
  ASSETS?: Fetcher;
  /** Bearer key of the operator. No default: without one, no workspace can be created. */
  ADMIN_KEY?: string;
  /** The deployment's first secret, of at least 32 characters, and a ring of newer ones: `shared/secret-ring.ts`. */
  SIGNING_SECRET: string;
  SIGNING_SECRETS?: string;
  /** What Web Push is signed with, `<public>.<private>`: `auth/vapid.ts`. Left out: nobody is told by push. */
  VAPID_KEYS?: string;
  /** Where browsers reach the page, where a proxy stands before it: `https://colloquy.example.com`. */
  PUBLIC_ORIGIN?: string;
  /** JSON: host → the workspace whose own users' JWTs come there without naming it. */
  WORKSPACE_HOSTS?: string;
  /** `development` allows models on loopback over http; anything else is production. */
  ENVIRONMENT?: string;
  /** JSON: alias → {provider, name, baseUrl?, apiKeyVariable?}. Only the operator can write it. */
  MODEL_ALIASES?: string;
  /** The address of an OTLP collector for spans, and its headers (`name=value,…`). Without one no spans are sent. */
  OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  OTEL_EXPORTER_OTLP_HEADERS?: string;
  OTEL_SERVICE_NAME?: string;
  /** `true` has spans carry prompts, texts and tools' inputs and results. */
  OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT?: string;
  /** `off` counts nobody's requests; anything else: the bindings below count, where there are any. */
  RATE_LIMITS?: string;
  /** The rate limits of a secret key, an entity, a hook's sender, an address without, and one with wrong credentials. */
  RATE_KEY?: RateLimit;
  RATE_ENTITY?: RateLimit;
  RATE_HOOK?: RateLimit;
  RATE_PUBLIC?: RateLimit;
  RATE_STRANGER?: RateLimit;
};
