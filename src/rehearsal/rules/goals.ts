import { callAndTell, type Doing, rule, type Turn } from "../turn.ts";
import { slug } from "../words.ts";

const change = (turn: Turn, goal: Record<string, string>, text: string, what: string): Doing =>
  callAndTell(turn, "set_goals", { goals: [goal] }, [text, what], () => [
    "I could not change that goal.",
    `could not: ${what}`,
  ]);

export const setGoal = rule(/^\s*(?:new |set (?:a |the )?)?goal\s*:\s*(.*\S)\s*$/is, (turn, description = "") => {
  const id = slug(description).slice(0, 32).replace(/_+$/, "") || "goal";
  const goal = { id, description: description.slice(0, 1000), status: "active" };
  return change(turn, goal, `Goal set: "${description}" (id: ${id}).`, `set the goal ${id}`);
});

export const endGoal = rule(
  /^\s*((?:i am |i'm |we are )?done with|complete|finish|drop|abandon)(?: the)?(?: goal)?:?\s+(.+?)\s*[.!]*$/is,
  (turn, verb = "", name = "") => {
    const wanted = slug(name);
    const id = turn.view.goals.find((goal) => slug(goal.id) === wanted || slug(goal.description) === wanted)?.id;
    if (id === undefined) return [`I have no goal "${name}".`, "no such goal"];
    const status = /drop|abandon/i.test(verb) ? "abandoned" : "completed";
    return change(turn, { id, status }, `The goal ${id} is ${status}.`, `${status} the goal ${id}`);
  },
);

export const listGoals = rule(/\b(?:what|which|list|show)\b.{0,20}\bgoals?\b/i, (turn) => {
  const list = turn.view.goals.map(({ id, description, status }) => `${description} (id: ${id}, ${status})`);
  return [list.length > 0 ? `My goals: ${list.join("; ")}` : "I have no goals yet.", "listed goals"];
});
