import { describe, expect, test } from "vitest";
import { rehearse, rehearseLines, replyTo, type Stage } from "./rehearsed-cycle.ts";

const planned = (text: string): unknown =>
  rehearse({}, { from: "Husam", text: `@Echo ${text}` }).calls.find(({ toolName }) => toolName === "set_plans")?.input;

const said = (stage: Stage, name: string, instruction: string) =>
  rehearseLines(stage, [`  [Plan ${JSON.stringify(name)}] ${JSON.stringify(instruction)}`]);

describe("it plans when asked", () => {
  test.each([
    ["remind me in 2 minutes to check the oven", { runAfter: "2 minutes" }, "Husam, a reminder: check the oven"],
    ["remind us to leave in an hour.", { runAfter: "an hour" }, "A reminder: leave"],
    ["every day at 9 say good morning", { cron: "0 9 * * *" }, "good morning"],
    [
      "every day at 9:30 pm in Asia/Riyadh remind us to rest",
      { cron: "30 21 * * *", timezone: "Asia/Riyadh" },
      "A reminder: rest",
    ],
    ["every weekday at 12am UTC, post a new day", { cron: "0 0 * * 1-5", timezone: "UTC" }, "a new day"],
    ["every hour say still here", { cron: "0 * * * *" }, "still here"],
  ])("%s", (text, times, words) => {
    const instruction = `In "Family", say: ${JSON.stringify(words)}`;
    expect(planned(text)).toEqual({ plans: [{ name: expect.any(String), instruction, ...times }] });
  });

  test("and says that it did, or why it failed", () => {
    const text = "@Echo remind me in 2 minutes to call";
    expect(replyTo(text)).toBe("Done: I will say so in 2 minutes.");
    expect(replyTo(text, { broken: ["set_plans"] })).toContain("I could not plan that");
  });

  test.each(["remind me of the code", "remind me what the code is", "every day is a good day"])(
    "not at: %s",
    (text) => {
      expect(planned(text)).toBeUndefined();
    },
  );
});

describe("when a plan is due it enters the space that its instruction names, and says it", () => {
  test.each([
    ['In "Family", say: "Husam, a reminder: call"', "Husam, a reminder: call"],
    ["Say good morning in Family.", "good morning"],
    ["Post the weekly menu to the Family", "the weekly menu"],
    ["in family announce: dinner", "dinner"],
    ["Ask for news in Family", "Ask for news in Family"],
  ])("%s", (instruction, words) => {
    expect(said({}, "Reminder", instruction).said).toEqual([{ spaceId: "spc_FAMILY", text: words }]);
  });

  test("it stays silent where the plan names none of its spaces", () => {
    expect(said({}, "heartbeat", "Look at your goals: do what is due.").calls).toEqual([
      { toolName: "skip", input: { reason: "the plan names none of my spaces" } },
    ]);
  });
});
