import { slug } from "../slug.ts";
import { answer, type Doing, type Rule, type ToolCall, type Turn } from "../turn.ts";

function* change(turn: Turn, call: ToolCall, text: string, what: string): Doing {
  const result = yield call;
  return result.ok
    ? yield* answer(turn, `${turn.tone.done} ${text}`, what)
    : yield* answer(turn, "I could not change that goal.", `could not: ${what}`);
}

const goalNamed = (turn: Turn, text: string): string | undefined => {
  const wanted = slug(text);
  return turn.view.goals.find(({ id, description }) => slug(id) === wanted || slug(description) === wanted)?.id;
};

export const setGoal: Rule = {
  forAgents: true,
  match: (turn) => {
    const description = /^\s*(?:new |set (?:a |the )?)?goal\s*:\s*(.+)$/is.exec(turn.request)?.[1]?.trim();
    if (!description) return undefined;
    const id = slug(description).slice(0, 32).replace(/_+$/, "") || "goal";
    return change(
      turn,
      { toolName: "set_goals", input: { goals: [{ id, description: description.slice(0, 1000), status: "active" }] } },
      `Goal set: "${description}" (id: ${id}).`,
      `set the goal ${id}`,
    );
  },
};

export const endGoal: Rule = {
  forAgents: true,
  match: (turn) => {
    const [, verb = "", name = ""] =
      /^\s*((?:i am |i'm |we are )?done with|complete|finish|drop|abandon)(?: the)?(?: goal)?:?\s+(.+?)\s*[.!]*$/is.exec(
        turn.request,
      ) ?? [];
    if (name === "") return undefined;
    const id = goalNamed(turn, name);
    if (id === undefined) return answer(turn, `I have no goal "${name}".`, "no such goal");
    const status = /drop|abandon/i.test(verb) ? "abandoned" : "completed";
    return change(
      turn,
      { toolName: "set_goals", input: { goals: [{ id, status }] } },
      `The goal ${id} is ${status}.`,
      `${status} the goal ${id}`,
    );
  },
};

export const listGoals: Rule = {
  forAgents: true,
  match: (turn) => {
    if (!/\b(?:what|which|list|show)\b.{0,20}\bgoals?\b/i.test(turn.request)) return undefined;
    const list = turn.view.goals.map(({ id, description, status }) => `${description} (id: ${id}, ${status})`);
    return answer(turn, list.length > 0 ? `My goals: ${list.join("; ")}` : "I have no goals yet.", "listed goals");
  },
};
