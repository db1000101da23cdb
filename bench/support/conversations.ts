import { type Random, seededRandom } from "../../test/kill/random.ts";

/**
 * Conversations with labelled evidence, the same for the same seed. For half a year a dozen people talk in four spaces
 * about thirty things, some of which change. They mention each other, ask, answer and chat. Each question names what it
 * asks in words of its own, and its evidence is every message that answers it.
 */
export type Said = { sender: string; space: string; text: string; at: number };
export type Question = { kind: string; text: string; evidence: Said[] };
export type Conversations = { people: string[]; spaces: string[]; said: Said[]; questions: Question[] };

const people = ["Mona", "Husam", "Sara", "Leo", "Amina", "Viktor", "Chen", "Priya", "Tomas", "Grace", "Yusuf", "Ines"];
const spaces = ["Project Alpha", "Kitchen", "Operations", "Customers"];
const topics = `launch party, office wifi, roof repair, coffee machine, budget review, hiring plan, pricing page,
  database migration, customer survey, parking garage, security audit, holiday calendar, print supplier, invoice template,
  onboarding guide, mobile app, data backup, press release, training course, team dinner, delivery van, warehouse lease,
  website search, newsletter, support queue, sales forecast, exhibition stand, legal contract, server room, logo redesign`
  .split(",")
  .map((topic) => topic.trim());

const opinions = [
  "The {topic} worries me, {reason}.",
  "I would leave the {topic} as it is: {reason}.",
  "We should talk about the {topic} again, {reason}.",
  "About the {topic}: {reason}, so I say yes.",
  "Nobody looks after the {topic}; {reason}.",
  "My view on the {topic} has changed, {reason}.",
  "@{other} is right on the {topic}, {reason}.",
  "{other} told me that the {topic} can wait; {reason}.",
  "Can somebody take the {topic} over? I have {number} other things to do.",
];
const reasons = [
  "it costs {number} a month",
  "the quality is poor",
  "two customers have asked for it",
  "it has been late {number} times",
  "the supplier went quiet",
  "nobody has the keys",
  "we promised it to the board",
  "it saves us {number} hours",
  "the rules were changed",
  "people like it as it is",
];
const chatter = [
  "Good morning everybody!",
  "Thanks {other}, that helps.",
  "Lunch at {number}?",
  "I am on the train, back in {number} minutes.",
  "Ha, that made my day.",
  "@{other} do you have a minute?",
  "Sounds good to me.",
  "Let me check and come back to you.",
  "What a week. Who is in tomorrow?",
  "{other} said something like that yesterday.",
];

const changing = [
  "launch",
  "board meeting",
  "release",
  "summer party",
  "office move",
  "stock count",
  "photo shoot",
  "workshop",
];
const days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"];
const changes = [
  "We moved the {thing} to {day} the {number}th.",
  "The {thing} is on {day} the {number}th then.",
  "Change of plan, {day} the {number}th for the {thing}.",
  "{other} cannot make it, so the {thing} goes to {day} the {number}th.",
];

const offices = ["Lisbon", "Riyadh", "Oslo", "Nairobi", "Kyoto", "Quito", "Tallinn", "Perth"];
const facts = ["alarm code", "wifi password", "door combination", "locker number"];
const bought = ["hotel", "caterer", "florist", "printer", "band", "courier"];
const named = ["Mirador", "Blue Fig", "Ottoman", "Harbour House", "Silver Birch", "Old Mill", "Pilgrim", "Red Door"];

/** Things that two people each do in their free time. They tell of them when they are asked, in other words. */
const hobbies: Record<string, string[]> = {
  pottery: [
    "Two bowls so far, and one of them leaks.",
    "A teapot! It took me three evenings.",
    "Only glazing this week.",
  ],
  climbing: [
    "We were up at the quarry, my arms still hurt.",
    "I fell twice, but the rope held.",
    "The blue route, at last.",
  ],
  choir: ["We sing in the old chapel in December.", "I am with the altos now.", "The new conductor is strict."],
  beekeeping: ["Eleven jars this summer.", "One queen has left, with half of them.", "They sleep until March now."],
  chess: ["I lost to a boy of nine.", "Third place, and a small cup.", "A draw, after five hours."],
  sailing: ["There was no wind at all.", "We came as far as the lighthouse.", "The mast needs to be mended first."],
};
const invitations = [
  "@{who} how is the {hobby} going?",
  "@{who} any news from your {hobby}?",
  "And the {hobby}, @{who}?",
];
const confessions = ["I have {hobby} on {day}s now.", "No meetings on {day} please, that is my {hobby} evening."];

/** A matter is opened, somebody objects, somebody decides: only the first message names it. */
const matters = [
  "new printer",
  "parking spaces",
  "lunch budget",
  "visitor badges",
  "winter heating",
  "garden furniture",
];
const openings = ["For {office} I would order the {matter} this month.", "Can we settle the {matter} for {office}?"];
const objections = ["That is too early for me, I have not seen the prices.", "I would rather ask the landlord first."];
const decisions = [
  "Then we wait until the {number}th and take the cheaper offer.",
  "Fine, I sign it on the {number}th.",
];

const monthOf = (at: number): string => new Date(at).toLocaleDateString("en", { month: "long", timeZone: "UTC" });

const firstDay = Date.parse("2026-05-01T08:00:00Z");
const length = 180 * 24 * 60 * 60_000;

/** Two neighbours of its letters change places, in a long word of a question. */
const misspelt = (text: string, random: Random): string => {
  const words = text.split(" ");
  const long = words.flatMap((word, index) => (word.length >= 6 ? [index] : []));
  for (const index of long) {
    const word = words[index] ?? "";
    const at = Math.floor(random.between(1, word.length - 2));
    words[index] = word.slice(0, at) + word.slice(at + 1, at + 2) + word.slice(at, at + 1) + word.slice(at + 2);
  }
  return words.join(" ");
};

export const conversations = (seed: number, messages = 3000): Conversations => {
  const random = seededRandom(seed);
  const other = (than: string): string => random.pick(people.filter((person) => person !== than));
  const filled = (template: string, sender: string, more: Record<string, string> = {}): string =>
    template
      .replaceAll("{reason}", () => random.pick(reasons))
      .replaceAll("{other}", () => other(sender))
      .replaceAll("{number}", () => String(Math.floor(random.between(2, 29))))
      .replaceAll(/\{(\w+)\}/g, (whole, name: string) => more[name] ?? whole);
  const anywhen = (): number => firstDay + Math.floor(random.between(0, length));

  const talk = Array.from({ length: messages }, (): Said & { topic?: string } => {
    const [sender, space, at] = [random.pick(people), random.pick(spaces), anywhen()];
    if (random.chance(0.6)) return { sender, space, at, text: filled(random.pick(chatter), sender) };
    const topic = random.pick(topics);
    return { sender, space, at, topic, text: filled(random.pick(opinions), sender, { topic }) };
  });
  const said: Said[] = [...talk];
  const questions: Question[] = [];
  const ask = (kind: string, text: string, evidence: Said[]): void => {
    if (evidence.length > 0 && evidence.length <= 8) questions.push({ kind, text, evidence });
  };

  for (const topic of topics) {
    const about = talk.filter((message) => message.topic === topic);
    const who = random.pick(people);
    ask(
      "who said what",
      `What did ${who} say about the ${topic}?`,
      about.filter(({ sender }) => sender === who),
    );
    const [one] = about;
    if (!one) continue;
    const { sender, at, space } = random.pick(about);
    const then = about.filter((message) => message.sender === sender && monthOf(message.at) === monthOf(at));
    ask("who said what when", `What was ${sender}'s opinion on the ${topic} in ${monthOf(at)}?`, then);
    const there = about.filter((message) => message.space === space && message.sender === sender);
    ask("who said what where", `In ${space}, what did ${sender} think of the ${topic}?`, there);
  }
  for (const thing of changing) {
    const owner = random.pick(spaces);
    const all = Array.from({ length: 14 }, (): Said => {
      const sender = random.pick(people);
      return {
        sender,
        space: owner,
        at: anywhen(),
        text: filled(random.pick(changes), sender, { thing, day: random.pick(days) }),
      };
    });
    said.push(...all);
    const newest = all.toSorted((a, b) => b.at - a.at).slice(0, 1);
    ask("facts that change", `When is the ${thing} now?`, newest);
    ask("facts that change", `When is the ${thing}?`, newest);
    ask("facts that change", `What is the current date of the ${thing}?`, newest);
  }
  for (const office of offices) {
    for (const fact of facts) {
      const sender = random.pick(people);
      const text = `For the ${office} office the ${fact} is ${Math.floor(random.between(1000, 9999))}.`;
      const message = { sender, space: random.pick(spaces), at: anywhen(), text };
      said.push(message);
      const question = `What is the ${fact} of the office in ${office}?`;
      ask("single facts", question, [message]);
      ask("single facts, misspelt", misspelt(question, random), [message]);
    }
    for (const kind of bought) {
      const [asker, space, at] = [random.pick(people), random.pick(spaces), anywhen()];
      const sender = other(asker);
      const answer = { sender, space, at: at + 60_000, text: `${random.pick(named)}, they were the cheapest.` };
      said.push({ sender: asker, space, at, text: `@${sender} which ${kind} did you choose for ${office}?` }, answer);
      ask("answers", `Which ${kind} did ${sender} choose for ${office}?`, [answer]);
    }
  }
  // Evidence in several messages. Drawn apart, so that what comes before stays as it is.
  const drawn = seededRandom(seed + 1_000_000);
  const fill = (template: string, more: Record<string, string>): string =>
    template.replaceAll(/\{(\w+)\}/g, (whole, name: string) => more[name] ?? whole);
  const someone = (...except: string[]): string => drawn.pick(people.filter((person) => !except.includes(person)));
  /** Messages a minute apart, with somebody's chatter among them at times, as people talk. */
  const exchange = (space: string, turns: [sender: string, text: string][]): Said[] => {
    let at = firstDay + Math.floor(drawn.between(0, length));
    return turns.map(([sender, text]) => {
      if (drawn.chance(0.4)) said.push({ sender: someone(sender), space, at: at - 20_000, text: "Sounds good to me." });
      const message = { sender, space, at, text };
      said.push(message);
      at += 60_000;
      return message;
    });
  };
  for (const [hobby, news] of Object.entries(hobbies)) {
    const one = someone();
    for (const who of [one, someone(one)]) {
      const told = news.flatMap((text) => {
        const asked = fill(drawn.pick(invitations), { who, hobby });
        return exchange(drawn.pick(spaces), [
          [someone(who), asked],
          [who, text],
        ]).slice(1);
      });
      const confessed = fill(drawn.pick(confessions), { hobby, day: drawn.pick(days) });
      told.push(...exchange(drawn.pick(spaces), [[who, confessed]]));
      ask("what one told in several talks", `What has ${who} told about the ${hobby}?`, told);
    }
  }
  for (const office of offices) {
    for (const matter of drawn.chance(0.5) ? matters.slice(0, 3) : matters.slice(3)) {
      const [opener, objector] = [someone(), someone()];
      const number = String(Math.floor(drawn.between(2, 29)));
      const evidence = exchange(drawn.pick(spaces), [
        [opener, fill(drawn.pick(openings), { office, matter })],
        [objector === opener ? someone(opener) : objector, drawn.pick(objections)],
        [opener, fill(drawn.pick(decisions), { number })],
      ]);
      ask("what was decided in a talk", `What was decided about the ${matter} for ${office}?`, evidence);
    }
  }
  for (const topic of topics) {
    const one = someone();
    const pair = [one, someone(one)];
    const about = talk.filter((message) => message.topic === topic && pair.includes(message.sender));
    ask("what two said", `What did ${pair.join(" and ")} say about the ${topic}?`, about);
  }
  said.sort((one, two) => one.at - two.at);
  return { people, spaces, said, questions };
};
