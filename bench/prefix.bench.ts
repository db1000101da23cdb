import { compose } from "../src/agent/context/compose.ts";
import { prefixReuse } from "../src/agent/context/sections.ts";
import { estimateMessages, estimateText } from "../src/agent/tokens.ts";
import { askingLife, type SentInput } from "./support/asking-life.ts";
import { confidentialLife } from "./support/confidential-life.ts";
import type { Bench } from "./support/figure.ts";
import { consciousnessSteps, type Input, timelineSnapshots } from "./support/inputs.ts";
import { literalLayout } from "./support/literal-layout.ts";
import { script } from "./support/script.ts";

/**
 * How much of a model's input is the beginning of the one before, in 200 turns in three spaces whose plans and memories
 * change. Both continuities are held against the first design's literal layout (time first, everything made anew). A
 * provider with a prefix cache bills such a beginning at a tenth.
 */
const turns = 200;
const leastReuse = 0.99;
const cachedPrice = 0.1;

type Pair = { earlier: Input; later: Input; reuse: number };

const pairsOf = (inputs: Input[]): Pair[] =>
  inputs.slice(1).flatMap((later, index) => {
    const earlier = inputs[index];
    return earlier ? [{ earlier, later, reuse: prefixReuse(earlier, later) }] : [];
  });

const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const least = (pairs: Pair[]): number => Math.min(...pairs.map(({ reuse }) => reuse));
const reuseOf = (pairs: Pair[]): number => mean(pairs.map(({ reuse }) => reuse));

const tokensOf = ({ instructions, messages }: Input): number => estimateText(instructions) + estimateMessages(messages);

/** Input tokens of all steps, and what they cost where cached ones are billed at a tenth. */
const billed = (inputs: Input[]): { all: number; billed: number } => {
  const all = inputs.reduce((sum, input) => sum + tokensOf(input), 0);
  const cached = pairsOf(inputs).reduce((sum, { earlier, reuse }) => sum + tokensOf(earlier) * reuse, 0);
  return { all, billed: all - cached * (1 - cachedPrice) };
};

const length = (input: Input): number =>
  input.instructions.length + input.messages.reduce((sum, message) => sum + JSON.stringify(message).length, 0);

/** Whether the later input repeats at least the sections above the first that changed. */
const keepsUnchanged = ({ earlier, later, reuse }: Pair): boolean => {
  const changed = earlier.sections.findIndex(({ text }, index) => text !== later.sections[index]?.text);
  const above = earlier.sections.slice(0, changed === -1 ? undefined : changed);
  return reuse * length(earlier) >= above.reduce((sum, { text }) => sum + text.length, 0);
};

/** An input of such a life must hold this, else it proves nothing. */
const happened = ["[answer to msg_", "is now shared with you", "is no longer shared", "fields: mail (text, required)"];

export const bench: Bench = async (report) => {
  const said = script(turns);
  const snapshots = timelineSnapshots(said);
  const consciousness = consciousnessSteps(said).map(
    ({ run, snapshot, fresh }): Input => ({ run, ...compose(snapshot), fresh }),
  );
  const timeline = snapshots.flatMap(({ run, snapshot, answer }): Input[] => {
    const first = { run, ...compose(snapshot), fresh: false };
    return [first, { ...first, messages: [...first.messages, ...answer] }];
  });
  const literal = snapshots.flatMap(({ run, snapshot }): Input[] => {
    const first = { run, ...literalLayout(snapshot), sections: [], fresh: false };
    return [first, first];
  });
  const broken: string[] = [];

  const lived = pairsOf(consciousness);
  const between = lived.filter(({ later }) => !later.fresh);
  const [read, bare] = [pairsOf(timeline), pairsOf(literal)];
  const isWithin = ({ earlier, later }: Pair): boolean => earlier.run === later.run;
  const isAcross = (pair: Pair): boolean => !isWithin(pair);
  const share = (name: string, figure: string, ours: number, baseline: number | null): void =>
    report({
      case: name,
      figure: `${figure}, higher is better`,
      unit: "%",
      ours: ours * 100,
      baseline: baseline === null ? null : baseline * 100,
    });

  share(
    "consciousness",
    `prefix reuse between compactions, the least, at least ${leastReuse * 100}`,
    least(between),
    null,
  );
  share("consciousness", "prefix reuse of all inputs, mean", reuseOf(lived), reuseOf(bare));
  share(
    "consciousness",
    "prefix reuse from one cycle to the next, mean",
    reuseOf(lived.filter(isAcross)),
    reuseOf(bare.filter(isAcross)),
  );
  share("timeline", "prefix reuse of all inputs, mean", reuseOf(read), reuseOf(bare));
  share(
    "timeline",
    "prefix reuse from one run to the next, mean",
    reuseOf(read.filter(isAcross)),
    reuseOf(bare.filter(isAcross)),
  );
  const leastOf = (inputs: SentInput[]): number =>
    Math.min(...inputs.slice(1).map((later, index) => prefixReuse(inputs[index] ?? later, later)));
  const asked = await askingLife();
  const leastRepeated = leastOf(asked);
  const figure = `prefix reuse of ${asked.length} inputs over HTTP, the least, at least ${leastReuse * 100}`;
  share("consciousness that waits, with shares and schemas", figure, leastRepeated, null);
  if (!(leastRepeated >= leastReuse)) broken.push(`a consciousness that waits repeats ${leastRepeated} of an input`);
  const minds = await confidentialLife();
  const leastThere = Math.min(...minds.map(leastOf));
  const there = `prefix reuse of ${minds.flat().length} inputs over HTTP, the least within each, at least ${leastReuse * 100}`;
  share(`consciousness in ${minds.length} confidential spaces`, there, leastThere, null);
  if (!(leastThere >= leastReuse)) broken.push(`in a confidential space it repeats only ${leastThere} of an input`);
  const isFed = minds.every((inputs) => JSON.stringify(inputs.at(-1)).includes("I answered 1."));
  if (!isFed) broken.push("a confidential space's inputs do not tell what was done openly");
  const last = JSON.stringify(asked.at(-1));
  const missing = happened.filter((words) => !last.includes(words));
  if (missing.length > 0) broken.push(`the life that waits shows nowhere: ${missing.join("; ")}`);
  const kept = mean(read.map((pair) => (keepsUnchanged(pair) ? 1 : 0)));
  share("timeline", "inputs that repeat everything above the first section that changed, all of them", kept, null);
  const compactions = lived.length - between.length;
  report({
    case: "consciousness",
    figure: "compactions on the way",
    unit: "compactions",
    ours: compactions,
    baseline: null,
  });
  const theirs = billed(literal);
  for (const [name, inputs] of [
    ["consciousness", consciousness],
    ["timeline", timeline],
  ] as const) {
    const ours = billed(inputs);
    report({
      case: name,
      figure: "input tokens given, lower is better",
      unit: "tokens",
      ours: ours.all,
      baseline: theirs.all,
    });
    report({
      case: name,
      figure: "input tokens billed, cached ones at a tenth, lower is better",
      unit: "tokens",
      ours: ours.billed,
      baseline: theirs.billed,
    });
  }

  if (least(between) < leastReuse)
    broken.push(`consciousness repeats only ${least(between) * 100} % between compactions`);
  if (compactions === 0) broken.push("nothing was compacted: the conversation is too short to tell");
  if (kept < 1) broken.push("a timeline input changed above the first section that changed");
  return Promise.resolve(broken);
};
