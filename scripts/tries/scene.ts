import { setTimeout as pause } from "node:timers/promises";
import type * as z from "zod";
import type { AgentConfig } from "../../src/protocol/agent.ts";
import type { FakeOpenAi, FakeRequest, FakeStep } from "../../test/support/fake-openai.ts";
import { ApiError, createApi } from "../api.ts";

/** What a trial is played with: a workspace of its own, its people, spaces and agents, all by HTTP. */
export type Continuity = AgentConfig["continuity"];
export type Scene = Awaited<ReturnType<typeof openScene>>;
export type Play = { line: string; says: string; as: Continuity[]; go: (scene: Scene) => Promise<void> };
export type Actor = Awaited<ReturnType<Scene["agent"]>>;

export type Run = {
  id: string;
  status: string;
  outcome?: string;
  completedAt?: string;
  trigger: { eventId: string; eventCount: number };
  steps: { toolCalls: { id: string; name: string; output: unknown }[] }[];
};
type Message = { id: string; text?: string; origin?: unknown };
/** What a model answers, or how it does by what it is given. */
type Answer = FakeStep | ((given: string) => FakeStep);
type Call = ReturnType<typeof use>;
type Speaker = { post(spaceId: string, text: string): Promise<string> };
export const timeline: Continuity[] = ["timeline"];
export const living: Continuity[] = ["consciousness"];
export const both: Continuity[] = ["timeline", "consciousness"];
type Part = string | RegExp;

export const say = (text: string): FakeStep => ({ text });
export const use = (name: string, input: Record<string, z.core.util.JSONType> = {}) => ({ name, arguments: input });
export const calls = (...toolCalls: Call[]): FakeStep => ({ toolCalls });
/** An answer that does not come before the model is let go on. */
export const held = { holdAfter: 0, text: "Done." };

/** The lines of a section of a prompt, from its heading to the next line that begins at the margin. */
export const sectionOf = (input: string, heading: string): string => {
  const lines = input.split("\n");
  const from = lines.findIndex((line) => line.startsWith(heading));
  const to = lines.findIndex((line, index) => index > from && !line.startsWith(" "));
  return from === -1 ? "" : lines.slice(from, to === -1 ? undefined : to).join("\n");
};

/** Asks again until there is an answer, for `ms` at most. */
export const until = async <T>(what: string, ask: () => Promise<T | false | undefined>, ms = 30_000): Promise<T> => {
  const deadline = Date.now() + ms;
  while (Date.now() < deadline) {
    const found = await ask();
    if (found !== undefined && found !== false) return found;
    await pause(25);
  }
  throw new Error(`it never came: ${what}`);
};

/** The error of a refused request. */
export const refusalOf = (request: Promise<unknown>): Promise<string> =>
  request.then(
    () => "it was not refused",
    (error: unknown) => {
      if (error instanceof ApiError) return error.message;
      throw error;
    },
  );

type Turn = { role: string; content?: string | { text?: string }[] | null; tool_calls?: unknown };
const turnsOf = ({ body }: FakeRequest) =>
  (body.messages as Turn[]).map(({ role, content, tool_calls }) => {
    const text = typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n");
    return { role, text: tool_calls === undefined ? text : `${text}${JSON.stringify(tool_calls)}` };
  });
const wholeOf = (request: FakeRequest): string =>
  turnsOf(request)
    .map(({ role, text }) => `━━━ ${role}\n${text}`)
    .join("\n");

/** The answers of each model, by its name. One that has nothing left to say says that it read. */
const queues = new Map<string, Answer[]>();
export const answerTo = (request: FakeRequest): FakeStep => {
  const next = queues.get(request.model)?.shift() ?? say("Read.");
  return { usage: null, ...(typeof next === "function" ? next(wholeOf(request)) : next) };
};

let scenes = 0;

export const openScene = async (url: string, adminKey: string, model: FakeOpenAi, continuity: Continuity) => {
  scenes += 1;
  const made = await createApi(url, adminKey).post<{ workspace: { id: string }; secretKey: string }>("/v1/workspaces", {
    name: `Try ${scenes}`,
  });
  const { secretKey, workspace } = made;
  const api = createApi(url, made.secretKey);
  const scripted = (name: string) => ({ provider: "openai-compatible", name, baseUrl: model.baseUrl });
  const checked: boolean[] = [];
  const check = (what: string, holds: boolean, instead?: unknown): void => {
    checked.push(holds);
    console.log(`  ${holds ? "ok " : "NOT"} ${continuity}: ${what}`);
    if (!holds) console.log(typeof instead === "string" ? instead : JSON.stringify(instead));
  };
  /** Whether all of it stands in the text, one part after the other. */
  const reads = (what: string, text: string | undefined, ...parts: Part[]): void => {
    let rest = text ?? "";
    const holds = parts.every((part) => {
      const at = typeof part === "string" ? rest.indexOf(part) : rest.search(part);
      rest = rest.slice(at + 1);
      return at !== -1;
    });
    check(what, holds, text);
  };

  const person = async (name: string) => {
    const { entity } = await api.post<{ entity: { id: string } }>("/v1/entities", { type: "human", name });
    const { token } = await api.post<{ token: string }>("/v1/tokens", { entityId: entity.id, expiresInSeconds: 3600 });
    const own = createApi(url, token);
    const post = async (spaceId: string, text: string) =>
      (await own.post<{ message: Message }>(`/v1/spaces/${spaceId}/messages`, { text })).message.id;
    return { id: entity.id, token, post };
  };
  const space = async (name: string, members: { id: string }[], wakePolicy = "every_message") => {
    const body = { name, wakePolicy, members: members.map(({ id }) => ({ entityId: id })) };
    return (await api.post<{ space: { id: string } }>("/v1/spaces", body)).space.id;
  };
  const messages = async (spaceId: string) =>
    (await api.get<{ items: Message[] }>(`/v1/spaces/${spaceId}/messages`)).items;
  /** What a path answers, as JSON. */
  const shown = async (path: string): Promise<string> => JSON.stringify(await api.get(path));

  const agent = async (settings: Record<string, unknown> = {}) => {
    const config = { name: "Analyst", continuity, messaging: "threaded", ...settings };
    const own = scripted(`${scenes} ${config.name}`);
    const { id } = (await api.post<{ agent: { id: string } }>("/v1/agents", { ...config, model: own })).agent;
    const at = `/v1/agents/${id}`;
    const requests = () => model.requests.filter((request) => request.model === own.name);
    const play = (...answers: Answer[]): void => {
      queues.set(own.name, [...(queues.get(own.name) ?? []), ...answers]);
    };
    const runs = async () => (await api.get<{ items: Run[] }>(`${at}/runs?limit=100`)).items.toReversed();
    const over = async () => (await runs()).filter(({ completedAt }) => completedAt);
    /** Its newest run, once so many have ended. */
    const ended = (count: number) =>
      until(`run ${count} of ${config.name} ends`, async () => (await over()).at(count - 1));
    /** Once one more has ended than before it was asked. */
    const after = async (ask: () => Promise<unknown>): Promise<Run> => {
      const count = (await over()).length + 1;
      await ask();
      return ended(count);
    };
    const asked = (count: number) => until("the model is asked", async () => requests().length >= count);
    /** The first input of its newest run: what came after its own last words. */
    const opening = (): string => {
      const all = requests().map(turnsOf);
      const turns = all.findLast((each) => each.at(-1)?.role === "user") ?? [];
      const fresh = turns.slice(turns.findLastIndex(({ role }) => role !== "user") + 1);
      return fresh.map(({ text }) => text).join("\n");
    };
    /** All that it was given with its newest request. */
    const given = (): string => requests().slice(-1).map(wholeOf).join("\n");
    /** Posts it, and has the agent make these calls in turn: its run, and what came of each, as JSON. */
    const does = async (by: Speaker, spaceId: string, text: string, ...wanted: Call[]) => {
      const before = (await runs()).length;
      const enters = continuity === "consciousness" ? [use("enter_space", { spaceId })] : [];
      play(...[...enters, ...wanted].map((call) => calls(call)), say("Done."));
      await by.post(spaceId, text);
      const { id: runId } = await until(`${config.name} rests`, async () => {
        const newest = (await runs()).at(before);
        return newest?.status !== "running" && newest;
      });
      // A wait leaves the rest unsaid.
      queues.delete(own.name);
      const { run } = await api.get<{ run: Run }>(`${at}/runs/${runId}`);
      const outputs = run.steps.flatMap(({ toolCalls }) => toolCalls.map(({ output }) => JSON.stringify(output)));
      return { run, outputs: outputs.slice(enters.length) };
    };
    return { id, at, requests, play, runs, ended, after, asked, opening, given, does };
  };

  /** What most plays begin with: Husam and the analyst in Alpha. */
  const room = async (settings: Record<string, unknown> = {}, wakePolicy = "every_message") => {
    const [husam, analyst] = [await person("Husam"), await agent(settings)];
    return { husam, analyst, alpha: await space("Alpha", [husam, analyst], wakePolicy) };
  };
  return {
    url,
    secretKey,
    workspaceId: workspace.id,
    api,
    continuity,
    model,
    scripted,
    checked,
    check,
    reads,
    person,
    space,
    messages,
    shown,
    agent,
    room,
  };
};
