import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as grammar from "../../../src/agent/context/grammar.ts";
import { unquoteLine } from "../../../src/shared/quote.ts";

/** Reads the golden prompts back, line by line. A prompt that changes beyond the grammar fails here. */
const { headings, inboxEvents, goneItems, stateSections } = grammar;

/** The line again, written from what was read in it; undefined where it does not have the form. */
type Reread = (line: string) => string | undefined;

const reread =
  <Values>(form: { read(line: string): Values | undefined; write(values: Values): string }): Reread =>
  (line) => {
    const values = form.read(line);
    return values === undefined ? undefined : form.write(values);
  };
const item =
  (form: Reread): Reread =>
  (line) => {
    const again = form(grammar.listItem.read(line)?.item ?? "");
    return again === undefined ? undefined : grammar.listItem.write({ item: again });
  };
const exactly =
  (...texts: string[]): Reread =>
  (line) =>
    texts.find((text) => text === line);

const empty = exactly(grammar.emptyList);
const leftSpace = item(reread(goneItems.spaces));
const deletedGoal = item(reread(goneItems.goals));
/** The forms that each section holds, by how its heading begins. */
const sections: [heading: string, forms: Reread[]][] = [
  [`${stateSections.spaces}:`, [item(reread(grammar.spaceItem)), leftSpace, empty]],
  [`${stateSections.goals}:`, [item(reread(grammar.goalItem)), deletedGoal, empty]],
  [`${stateSections.memories}:`, [item(reread(grammar.memoryItem)), item(reread(goneItems.memories)), empty]],
  [
    "INBOX (",
    [
      reread(inboxEvents.message),
      reread(inboxEvents.service),
      reread(inboxEvents.plan),
      reread(inboxEvents.unanswered),
      reread(inboxEvents.toolResult),
      reread(grammar.inboxHeading),
    ],
  ],
  [headings.trigger, [reread(grammar.triggerField)]],
  [headings.thisRun, [item(reread(grammar.earlierCall)), reread(grammar.resumeLine)]],
  ["SPACE HISTORY (", [reread(grammar.historyMessage), reread(grammar.historyTurn)]],
];
const anywhere = [reread(grammar.activeSpace), exactly(grammar.noActiveSpace), reread(grammar.nowLine)];

/** Lines that a model reads and nobody reads back: notes, own words and deeds, summaries. */
const writtenOnly = [
  /^\((?!none\)).+\)$/,
  /^\["[^"]*", spc_\w+\] \(\d+ earlier messages/,
  /^\[(?:reply to|sent because) .*\]$/,
  /^\[[^\]]*\] You: (?:called|sent) /,
  /^(?:"|You: called ).* {2}\[msg_\w+\] \[[^\]]*\] \[SEEN\]$/,
  /^- "\w+" is kept, not shown: /,
  /^SUMMARY of |^\| /,
  /^━━━/,
];

const goldens = globSync("**/*.golden.txt", { cwd: import.meta.dirname });

/** The lines of a golden file that stand below a heading of the grammar, each with the forms that it may have. */
const linesOf = (file: string): { line: string; forms: Reread[] }[] => {
  let forms: Reread[] | undefined;
  const found: { line: string; forms: Reread[] }[] = [];
  for (const line of readFileSync(`${import.meta.dirname}/${file}`, "utf8")
    .split("\n")
    .map((each) => each.trim())) {
    const isAnywhere = anywhere.some((form) => form(line) !== undefined);
    if (isAnywhere || line.startsWith("ACTIVE SPACE:") || line.startsWith("NOW:")) {
      found.push({ line, forms: anywhere });
      forms = undefined;
    } else if (line.startsWith("━━━")) forms = undefined;
    else if (grammar.isHeading(line)) {
      forms = sections.find(([heading]) => line.startsWith(heading))?.[1];
      if (line.startsWith("INBOX (")) found.push({ line, forms: forms ?? [] });
    } else if (forms && line !== "" && !writtenOnly.some((pattern) => pattern.test(line))) found.push({ line, forms });
  }
  return found;
};

describe("the grammar of the prompts", () => {
  test.each(goldens)("it reads each line of %s, and writes the same bytes", (file) => {
    for (const { line, forms } of linesOf(file)) {
      expect(forms.map((form) => form(line)).filter((again) => again !== undefined)).toContain(line);
    }
  });

  test("each of its forms stands in a golden prompt", () => {
    const lines = goldens.flatMap(linesOf);
    // `test/rehearsal/reads-context.test.ts` reads those two.
    const inNone = new Set([leftSpace, deletedGoal]);
    for (const form of new Set([...sections.flatMap(([, forms]) => forms), ...anywhere]).difference(inNone)) {
      expect(lines.filter(({ line, forms }) => forms.includes(form) && form(line) !== undefined)).not.toEqual([]);
    }
  });

  test("it reads the agent's name, and how the summariser's prompt begins", () => {
    const system = readFileSync(`${import.meta.dirname}/instructions-tool-rules.golden.txt`, "utf8");
    const [heading, name] = system.split("\n").map((line) => line.trim());
    expect(heading).toBe(headings.identity);
    expect(grammar.identityName.read(name ?? "")).toEqual({ name: "DataAnalyst" });
    expect(system.split("\n")).toContain(headings.role);
    const summary = readFileSync(`${import.meta.dirname}/summary/cycles.golden.txt`, "utf8");
    expect(summary.startsWith(grammar.summariserOpening)).toBe(true);
    const [cycle, ...told] = summary.split("\n").slice(summary.split("\n").indexOf("CYCLE 1:"));
    expect(grammar.cycleHeading.read(cycle ?? "")).toEqual({ number: "1" });
    const words = told.flatMap((line) => unquoteLine(line) ?? []);
    expect(grammar.toldMessage.read(words.at(-1) ?? "")).toMatchObject({ role: "assistant" });
  });

  test.each([
    { replied: ["Ann"], timedOut: [], gone: [], apart: [], sealed: [] },
    {
      ...{ replied: ["Ann", 'B" left the space without a reply. '], timedOut: ["C, D"], gone: ["← RESUME"] },
      ...{ apart: ["B"], sealed: ["E", "F"] },
    },
    { replied: [], timedOut: [], gone: [], apart: [], sealed: [] },
  ])("[S2] it reads who answered a wait and who did not, whatever their names (%#)", (outcome) => {
    expect(grammar.resumeLine.read(grammar.resumeLine.write(outcome))).toEqual(outcome);
  });
});
