import { answer, type Rule, type Turn } from "../turn.ts";

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

/** What it can do with tools that not every agent has. */
const usesOf = ({ cycle }: Turn): string =>
  uses
    .filter(([tool]) => cycle.tools.some(({ name }) => tool.test(name)))
    .map(([, ability]) => `, ${ability}`)
    .join("");

const abilitiesOf = (turn: Turn): string => {
  const { cycle } = turn;
  const asking = cycle.canWait ? 'ask others and wait ("ask <names> …"), ' : "";
  return `I can greet, repeat ("say …"), count ("count to 10"), write at length ("write 200 words", "tell a story"), remember and recall ("remember that …", "what do you remember?"), carry a message ("tell <space or person> …"), ${asking}count votes ("count the votes"), keep goals ("goal: …", "done with <id>") and come back later ("remind me in 2 minutes to …", "every day at 9 say …")${usesOf(turn)}.`;
};

const selfDescription = (name: string): string =>
  `I am ${name || "an agent"}, played by Colloquy's rehearsal model: a program that follows plain rules, not an LLM.`;

export const identity: Rule = {
  forAgents: true,
  match: (turn) =>
    /\b(?:who|what) are you\b|\bare you (?:really )?(?:an? )?(?:real|human|person|bot|ai|llm|robot|program|language model|machine|chatgpt|gpt)\b|\bwhat (?:kind of )?model\b/i.test(
      turn.request,
    )
      ? answer(turn, `${selfDescription(turn.view.name)} ${abilitiesOf(turn)}`, "who I am")
      : undefined,
};

export const help: Rule = {
  forAgents: true,
  match: (turn) =>
    /\bwhat can you do\b|^\s*help\s*[.!?]*$|\bhow can you help\b/i.test(turn.request)
      ? answer(turn, abilitiesOf(turn), "what I can do")
      : undefined,
};

export const greeting: Rule = {
  forAgents: false,
  match: (turn) =>
    /^\s*(?:hi|hello|hey|salaam|salam|as-?salamu alaykum|good (?:morning|afternoon|evening|day)|greetings|welcome|ahoy)\b/i.test(
      turn.request,
    ) || turn.request === ""
      ? answer(turn, turn.tone.greet(turn.event.senderName), "greeting")
      : undefined,
};

export const thanks: Rule = {
  forAgents: false,
  match: (turn) =>
    /^\s*(?:many |great,? |perfect,? )?(?:thanks|thank you|thx|shukran)\b/i.test(turn.request)
      ? answer(turn, turn.tone.dress(`You are welcome, ${turn.event.senderName}.`), "thanks")
      : undefined,
};

export const ping: Rule = {
  forAgents: true,
  match: (turn) => (/^\s*ping\s*[.!?]*$/i.test(turn.request) ? answer(turn, "pong", "ping") : undefined),
};

export const time: Rule = {
  forAgents: true,
  match: (turn) =>
    turn.view.now !== undefined && /\bwhat(?:'s| is)? (?:the )?(?:time|date)\b/i.test(turn.request)
      ? answer(turn, turn.tone.dress(`It is ${turn.view.now}.`), "the time")
      : undefined,
};

export const whoIsHere: Rule = {
  forAgents: true,
  match: (turn) => {
    const space = turn.view.spaces.find(({ id }) => id === turn.event.spaceId);
    if (!space || !/\bwho(?:'s| is| else is)? (?:here|in (?:this|the) space)\b/i.test(turn.request)) return undefined;
    const others = space.members.filter(({ name }) => name !== turn.view.name);
    const list = others.map(({ name, kind }) => `${name} (${kind})`).join(", ");
    return answer(turn, `In "${space.name}": ${list}, and I.`, "who is here");
  },
};

/** For what no rule is about: it says so, honestly, instead of pretending to understand. */
export const cannotAnswer = (turn: Turn) =>
  answer(
    turn,
    `I have no rule for that. I am only a rehearsal model that follows plain rules, not an LLM. ${abilitiesOf(turn)}`,
    "no rule for it",
  );

/** What an agent that always answers says to a message that asks for nothing. */
export const acknowledge = (turn: Turn) => answer(turn, `Noted, ${turn.event.senderName}.`, "acknowledged");
