import { answer, type Doing, rule, ruleForPeople, spaceOf, type Turn } from "../turn.ts";

const uses: [tool: RegExp, ability: string][] = [
  [/^deploy/i, 'deploy ("deploy <what>")'],
  [/approv/i, 'ask for approval ("approve <what>")'],
  [/^choose$/i, 'ask people to choose ("ask us to choose a, b or c")'],
  [/^form$/i, 'ask them to fill something in ("ask us to fill in name and date")'],
  [/^chart$/i, 'draw charts ("chart a: 1, b: 2")'],
  [/^block_edit$/i, 'keep lists with you ("add milk to the list", "cross off milk", "what is on the list?")'],
  [/^search$/i, 'find who said what ("who said …?")'],
  [/^table$/i, 'draw tables ("table name, age: Ann, 7; Bob, 9")'],
];

const abilitiesOf = ({ cycle }: Turn): string => {
  const asking = cycle.canWait ? 'ask others and wait ("ask <names> …"), ' : "";
  const withTools = uses.filter(([tool]) => cycle.tools.some(({ name }) => tool.test(name)));
  return `I can greet, repeat ("say …"), count ("count to 10"), write at length ("write 200 words", "tell a story"), remember and recall ("remember that …", "what do you remember?"), carry a message ("tell <space or person> …"), ${asking}count votes ("count the votes"), keep goals ("goal: …", "done with <id>") and come back later ("remind me in 2 minutes to …", "every day at 9 say …")${withTools.map(([, ability]) => `, ${ability}`).join("")}.`;
};

export const identity = rule(
  /\b(?:who|what) are you\b|\bare you (?:really )?(?:an? )?(?:real|human|person|bot|ai|llm|robot|program|language model|machine|chatgpt|gpt)\b|\bwhat (?:kind of )?model\b/i,
  (turn) => {
    const self = `I am ${turn.view.name || "an agent"}, played by Colloquy's rehearsal model: a program that follows plain rules, not an LLM.`;
    return [`${self} ${abilitiesOf(turn)}`, "who I am"];
  },
);

export const help = rule(/\bwhat can you do\b|^\s*help\s*[.!?]*$|\bhow can you help\b/i, (turn) => [
  abilitiesOf(turn),
  "what I can do",
]);

export const greeting = ruleForPeople(
  /^\s*(?:hi|hello|hey|salaam|salam|as-?salamu alaykum|good (?:morning|afternoon|evening|day)|greetings|welcome|ahoy)\b|^$/i,
  ({ tone, event }) => [tone.greet(event.senderName), "greeting"],
);

export const thanks = ruleForPeople(
  /^\s*(?:many |great,? |perfect,? )?(?:thanks|thank you|thx|shukran)\b/i,
  ({ tone, event }) => [tone.dress(`You are welcome, ${event.senderName}.`), "thanks"],
);

export const ping = rule(/^\s*ping\s*[.!?]*$/i, () => ["pong", "ping"]);

export const time = rule(/\bwhat(?:'s| is)? (?:the )?(?:time|date)\b/i, ({ view, tone }) =>
  view.now === undefined ? undefined : [tone.dress(`It is ${view.now}.`), "the time"],
);

export const whoIsHere = rule(/\bwho(?:'s| is| else is)? (?:here|in (?:this|the) space)\b/i, (turn) => {
  const space = spaceOf(turn);
  const others = space?.members.filter(({ name }) => name !== turn.view.name) ?? [];
  const list = others.map(({ name, kind }) => `${name} (${kind})`).join(", ");
  return space && [`In "${space.name}": ${list}, and I.`, "who is here"];
});

/** The answer where no rule matches: it says so, and does not pretend to understand. */
export const cannotAnswer = (turn: Turn): Doing =>
  answer(
    turn,
    `I have no rule for that. I am only a rehearsal model that follows plain rules, not an LLM. ${abilitiesOf(turn)}`,
    "no rule for it",
  );

/** The answer of an agent that always answers to a message that asks for nothing. */
export const acknowledge = (turn: Turn): Doing => answer(turn, `Noted, ${turn.event.senderName}.`, "acknowledged");
