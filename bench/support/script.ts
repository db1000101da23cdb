import type { AgentState, InputParts, KnownSpace } from "../../src/agent/context/agent-state.ts";
import { resolveLimits } from "../../src/agent/context/limits.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import type { Member } from "../../src/protocol/entity.ts";
import type { Message } from "../../src/protocol/message.ts";

/**
 * A scripted conversation. People write to one agent in three spaces in turn, and it answers. Now and then a plan or a
 * memory of it changes. The same at every run: nothing is random.
 */
export type Turn = {
  now: string;
  state: AgentState;
  space: KnownSpace;
  asked: Message;
  answered: Message;
  /** The space's messages before this question. */
  history: Message[];
};

const startsAt = Date.parse("2026-02-18T08:00:00Z");
const minutesApart = 3;
const plansChangeEvery = 20;
const memoriesChangeEvery = 8;

const member = (name: string, type: Member["type"]): Member => ({
  id: `ent_${name.toUpperCase().padStart(26, "0")}`,
  name,
  type,
  joinedAt: new Date(startsAt).toISOString(),
});
const self = member("Analyst", "agent");
const people = ["Husam", "Sarah", "Ahmad"].map((name) => member(name, "human"));
const spaces = ["Project", "Reports", "Team"].map((name) => ({
  id: `spc_${name.toUpperCase().padStart(26, "0")}`,
  name,
  members: [...people, self],
}));

const at = (minutes: number): string => new Date(startsAt + minutes * 60_000).toISOString();

/** What the agent's inputs are composed with. */
export const partsOf = (continuity: AgentConfig["continuity"], context = {}): InputParts => {
  const config = AgentConfig.parse({
    name: self.name,
    description: "Answers questions about revenue.",
    instructions: "Be exact, name the source of every number.",
    ...{ context, continuity },
  });
  const limits = resolveLimits(config.context, { name: "scripted", window: null }, undefined);
  return { config, limits, tools: {}, correction: 1 };
};

const stateAt = (turn: number): AgentState => {
  const memories = Array.from({ length: 1 + Math.floor(turn / memoriesChangeEvery) }, (_, index) => ({
    key: `region_${index}`,
    value: `Region ${index} reports on day ${(index % 28) + 1} of each month`,
    updatedAt: at(index * memoriesChangeEvery * minutesApart),
  }));
  const plan = Math.floor(turn / plansChangeEvery);
  return {
    agentId: self.id,
    spaces,
    goals: [{ id: "q4", description: "Finish the Q4 analysis", status: "active", longTerm: false, updatedAt: at(0) }],
    memories: memories.slice(-20),
    plans: [
      {
        id: "daily",
        name: "Daily report",
        instruction: "Post the daily numbers",
        status: "active",
        setBy: "agent",
        cron: "0 9 * * *",
        nextRunAt: at(24 * 60 + 60),
      },
      {
        id: `follow-${plan}`,
        name: `Follow up ${plan}`,
        instruction: "Ask what became of it",
        status: "active",
        setBy: "agent",
        scheduledAt: at((plan + 1) * plansChangeEvery * minutesApart + 120),
        nextRunAt: at((plan + 1) * plansChangeEvery * minutesApart + 120),
      },
    ],
  };
};

export const script = (turns: number): Turn[] => {
  const logs = new Map<string, Message[]>();
  return Array.from({ length: turns }, (_, turn) => {
    const space = spaces[turn % spaces.length] ?? { id: "", name: "", members: [] };
    const log = logs.get(space.id) ?? [];
    logs.set(space.id, log);
    const history = [...log];
    const say = (sender: Member, minutes: number, text: string): Message => {
      const seq = log.length + 1;
      const message: Message = {
        id: `msg_${String(turn * 2 + (sender === self ? 1 : 0)).padStart(26, "0")}`,
        seq,
        spaceId: space.id,
        kind: "text",
        sender: { id: sender.id, name: sender.name, type: sender.type },
        text,
        createdAt: at(minutes),
      };
      log.push(message);
      return message;
    };
    const person = people[Math.floor(turn / spaces.length) % people.length] ?? self;
    const minutes = turn * minutesApart;
    const asked = say(
      person,
      minutes,
      `What is the revenue of region ${turn}, and how does it compare with last year?`,
    );
    const answered = say(
      self,
      minutes + 1,
      `Region ${turn}: ${1000 + turn * 17}, that is ${turn % 13} % more. Source: ledger.`,
    );
    return { now: at(minutes), state: stateAt(turn), space, asked, answered, history };
  });
};
