import { jsonSchema, type Schema, zodSchema } from "ai";
import type * as z from "zod";
import type { AgentConfig } from "../../protocol/agent.ts";
import type { ArchivalSource } from "../../protocol/archival.ts";
import type { Message } from "../../protocol/message.ts";
import type { Plan, PutPlan } from "../../protocol/plan.ts";
import type { Root } from "../../protocol/rpc.ts";
import type { Approval, ToolConfig } from "../../protocol/tool.ts";
import type { ToolCallRelease } from "../../protocol/tool-call.ts";
import { linesIn, quote, visibleJson } from "../../shared/quote.ts";
import type { Archival } from "../memory/archival.ts";
import type { BlockServices } from "../memory/blocks/shared-blocks.ts";
import type { Goals, Memories } from "../memory/memory-state.ts";
import type { Search } from "../memory/search/search.ts";
import type { KnownOrigin } from "../records.ts";
import type { Spaces } from "../spaces.ts";
import { invalidInput, parseInput } from "./input-issues.ts";

/** The services that tools work with. */
export type ToolServices = BlockServices & {
  spaces: Spaces;
  memories: Memories;
  goals: Goals;
  archival: Archival;
  search: Search;
};

/** One call, in or outside a run. */
export type CallContext = {
  services: ToolServices;
  callId: string;
  /** Its run, as long as that is known. */
  runId?: string | undefined;
  /** An earlier life of the run began this call: what it was to say may have been said. The space knows. */
  replayed: boolean;
  /** People have agreed to it. */
  consented: boolean;
  signal: AbortSignal;
  /** What the call's chain began with. Requests that leave here carry it. */
  root(): Root;
  activeSpaceId: string | null;
  /** The messages that its run had, as far as they are known. */
  sources?(): string[];
  /** The entity ids of those who let it run, where people were asked; the first to answer first. */
  approvedBy?: readonly string[] | undefined;
  /** Where it goes, as those people were told, and when. `release` tells it of words that leave a confidential space. */
  target?: string | undefined;
  release?: ToolCallRelease | null | undefined;
  askedAt?: number | undefined;
  /** When it was begun, or let run by people, in milliseconds since the epoch: the same for each replay. */
  begunAt: number;
};

/** Which of its runs an agent asks for. */
type AskedRuns = {
  status?: string;
  before?: string;
  runId?: string;
  actionsBefore?: number;
  limit: number;
  offset: number;
};

/** The things that a tool may use while one call of a run goes on. It knows nothing of runs, journals or streams. */
export type ToolContext = CallContext & {
  /** Estimated tokens that a result may hold, so that the model's next input is not too long. */
  roomTokens(): number;
  /** Which messages of a space the agent was done with before; null where it keeps no such marks. */
  seenIn: ((spaceId: string) => (message: Message) => boolean) | null;
  /** Why a message was said, as the agent knows it: of its own ones more than others do. `reads`: the spaces that this tells of. */
  originOf(message: Message): { origin?: KnownOrigin | undefined; reads: string[] };
  /** Says `text` in the active space, once per call however often it is replayed. */
  say(spaceId: string, text: string, how?: { replyTo?: string; awaits?: EntityName[] }): Promise<Message>;
  /** Whose answers an earlier life of the call awaits. */
  awaited(): EntityName[];
  /** The source of the text that the call keeps: who said it, where and with which message. */
  source(): ArchivalSource;
  /** The agent's own runs, as one of them sees them. Refusals are thrown. */
  runs: {
    list(asked: AskedRuns): { runs: object[]; omitted?: string; reads: string[] };
    /** Ends another run at once. Throws `conflict` if it has ended. */
    stop(runId: string): Promise<void>;
    /** Ends another run at once and takes over what it took. Answers it: its trigger, what it did, and what of it was cut. */
    absorb(runId: string): Promise<{ run: object; reads: string[] }>;
  };
  /** Setting them again in a replay of the call changes nothing. */
  plans: {
    /** All or none. One without id is given one. */
    set(plans: ({ id?: string | undefined } & PutPlan)[]): Plan[];
    list(): Plan[];
    delete(ids: string[]): void;
  };
};

export type EntityName = { id: string; name: string };

export type ToolOutput = {
  value: unknown;
  /** Set where the call moves the active space. */
  activeSpaceId?: string | null;
  /** The call asks for answers: the run waits for them once its step is done. */
  waits?: true;
  /** The newest message of each space that it showed, by its place in the log. */
  shown?: { spaceId: string; upTo: number }[];
  /** The spaces whose messages it tells, by id. */
  reads?: string[];
};

/** `target`: where it goes, as people are told it. `input`: what they are shown and agree to, where that says more than the call's. */
export type AskedApproval = Approval & { target?: string | undefined; input?: object | undefined };

/** How a tool asks people first, outside of the run that called it. */
export type Consent<Input> = {
  /** The people who must agree; undefined if nobody need. Throws if no consent allows it. */
  approval(input: Input, call: CallContext): Promise<AskedApproval | undefined>;
  /** Does it, once they have. */
  carryOut(input: Input, call: CallContext): Promise<unknown>;
};

type Definition<Input> = {
  name: string;
  description: string;
  input: z.ZodType<Input>;
  /**
   * A call may change something that outlives its run, or a call with this input may. A run that made one is remembered,
   * however it ends, and never begun anew by itself.
   */
  effect: boolean | ((input: unknown) => boolean);
  /** Executing the same call again changes nothing more, so a replay may (R3). */
  idempotent: boolean;
  /** It may change the active space: what is said after it in the same step is held until it has run. */
  movesSpace?: boolean;
  /** Only agents of this continuity have it, or of this messaging. */
  only?: AgentConfig["continuity"] | AgentConfig["messaging"];
  /** Agents whose config leaves out the tools for their memory do not have it. */
  ofMemory?: boolean;
  /** The fields of its input by which search finds a call; left out: all. Kept texts are found where they are kept. */
  foundBy?: string[];
  /** It writes words into the block that its input's `label` names. */
  writesBlock?: true;
  /** It says its input's `text` in the active space, where that is streamed as it is written. */
  speaks: boolean;
  /** The history of a timeline run names the calls of earlier runs. Left out: what shows as a message, and mere looks. */
  showsInHistory: boolean;
  /** The run that a call ends: its own, another one of the agent, or none. */
  endsRun: "own" | "other" | null;
  /** For a tool that people may have to agree to, by its input. */
  consent?: Consent<NoInfer<Input>>;
  execute(input: Input, context: ToolContext): Promise<ToolOutput> | ToolOutput;
};

/** A capability of the agent, its input checked at the door. Refusals are thrown as `ColloquyError`s. */
export type Tool = Omit<Definition<unknown>, "execute" | "consent" | "effect" | "input"> & {
  effect(input: unknown): boolean;
  /** For a tool that the agent's owner wrote. */
  config?: ToolConfig;
  /** It ends by a timeout of its own: while it runs, its run has not stalled. */
  isTimed?: true;
  consent?: Consent<unknown> | undefined;
  /** The schema of its input, as the model is told it. */
  schema(): Schema<unknown>;
  /** Throws what is wrong with an input, before anything begins. */
  check(input: unknown): void;
  execute(input: unknown, context: ToolContext): Promise<ToolOutput>;
};

export { invalidInput, parseInput };

/** The properties of most tools that change something. */
export const acts = {
  effect: true,
  idempotent: true,
  speaks: false,
  showsInHistory: true,
  endsRun: null,
} as const;

/** The properties of most tools that change nothing. */
export const looks = { ...acts, effect: false, showsInHistory: false } as const;

/** Settings that all tools of an owner or a server share. */
export const broughtTool = { speaks: false, showsInHistory: true, endsRun: null } as const;

const annotations = new Set(["title", "description", "$comment"]);

/** A schema that somebody else wrote, as models read it: each note on one line, with what nobody sees as escapes (C4, C5). */
export const schemaAsTold = (schema: object): Schema<unknown> => {
  const onOneLine = JSON.stringify(schema, (key, held: unknown) =>
    typeof held === "string" && annotations.has(key) && linesIn(held).length > 1 ? quote(held) : held,
  );
  return jsonSchema(Object(visibleJson(JSON.parse(onOneLine))));
};

export const defineTool = <Input>(definition: Definition<Input>): Tool => {
  const { input: parser, execute, consent, effect, ...plain } = definition;
  const schema = zodSchema(parser);
  return {
    ...plain,
    effect: typeof effect === "boolean" ? () => effect : effect,
    consent: consent && {
      approval: async (input, call) => consent.approval(parseInput(parser, input), call),
      carryOut: async (input, call) => consent.carryOut(parseInput(parser, input), call),
    },
    schema: () => schema,
    // Its own parser has read it already when it executes.
    check: () => undefined,
    execute: async (input, context) => execute(parseInput(parser, input), context),
  };
};
