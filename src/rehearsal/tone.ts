/** An agent's manner of speaking. Words of its instructions decide it, so that agents can be told apart. */
export type Tone = {
  name: "plain" | "brief" | "cheerful" | "formal" | "pirate";
  greet(name: string): string;
  done: string;
  /** Put around an answer that has no form of its own. */
  dress(text: string): string;
};

const tones: Record<Tone["name"], Tone> = {
  plain: { name: "plain", greet: (name) => `Hello, ${name}!`, done: "Done:", dress: (text) => text },
  brief: { name: "brief", greet: (name) => `Hi ${name}.`, done: "Done:", dress: (text) => text },
  cheerful: {
    name: "cheerful",
    greet: (name) => `Hey ${name}, great to see you! 🎉`,
    done: "All done! 🎉",
    dress: (text) => `${text} 😊`,
  },
  formal: {
    name: "formal",
    greet: (name) => `Good day, ${name}. I am at your service.`,
    done: "Certainly. I confirm:",
    dress: (text) => text,
  },
  pirate: {
    name: "pirate",
    greet: (name) => `Ahoy, ${name}!`,
    done: "Aye, it be done:",
    dress: (text) => `Arr! ${text}`,
  },
};

const keywords: [RegExp, Tone["name"]][] = [
  [/\bpirate\b/i, "pirate"],
  [/\b(?:cheerful|friendly|enthusiastic|playful)\b/i, "cheerful"],
  [/\b(?:formal|polite|courteous)\b/i, "formal"],
  [/\b(?:brief|terse|concise|short answers)\b/i, "brief"],
];

export const toneOf = (instructions: string): Tone =>
  tones[keywords.find(([pattern]) => pattern.test(instructions))?.[1] ?? "plain"];
