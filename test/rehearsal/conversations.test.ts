import { describe, expect, test } from "vitest";
import { decide } from "../../src/rehearsal/decide.ts";
import { parsePrompt } from "../../src/rehearsal/parse-prompt.ts";
import { eventLine, rehearse, rehearseLines, replyTo, type Stage } from "./rehearsed-cycle.ts";

const pair: Stage = { spaces: [{ id: "spc_PAIR", name: "Husam and Echo", members: [["Husam", "human"]] }] };
const people = (...names: string[]) => names.map((name): [string, string] => [name, "human"]);
const twoSpaces: Stage = {
  spaces: [
    { id: "spc_FAMILY", name: "Family", members: people("Husam", "Ahmad") },
    { id: "spc_WORK", name: "Design Team", members: people("Sara", "Muhammad") },
  ],
};

describe("who is answered", () => {
  test("[S2] the first step only skips a message that addresses nobody", () => {
    const { calls } = rehearse({}, { from: "Husam", text: "I bought bread" });
    expect(calls).toEqual([{ toolName: "skip", input: { reason: "not addressed to me" } }]);
  });

  test.each([
    ["by @name", "@Echo hi"],
    ["by @name in any case", "@echo hi"],
    ["by name", "hello Echo"],
    ["by name first", "Echo, say hello"],
    ["with everyone", "hi all"],
    ["with everyone, greeted by day", "Good morning everyone!"],
    ["by a question to all", "can anyone count to 3?"],
    ["with all of you", "all of you say hi"],
  ])("it answers when addressed %s", (_, text) => {
    expect(replyTo(text)).toBeDefined();
  });

  test.each(["@Designer hi", "Designer, say hello", "Echoes of the past", "Ahmad: are you there?", "my @Echoes"])(
    "it is silent when another is addressed: %s",
    (text) => {
      expect(rehearse({}, { from: "Husam", text }).calls[0]?.toolName).toBe("skip");
    },
  );

  test("it answers without its name in a space of two members", () => {
    expect(rehearse(pair, { from: "Husam", text: "hello", in: "spc_PAIR" }).said[0]?.text).toBe("Hello, Husam!");
  });

  test("it answers a message that woke it by mention", () => {
    expect(rehearse({}, { from: "Husam", text: "hi", trigger: "mention" }).said).toHaveLength(1);
  });

  test("it does not answer a message that it only overheard, even a greeting to all", () => {
    expect(rehearse({}, { from: "Husam", text: "hi all", trigger: "none" }).calls[0]?.toolName).toBe("skip");
  });

  test("[B1] another agent's statement or greeting is never answered, even by @name", () => {
    for (const text of ["@Echo hello", "@Echo thanks", "@Echo nice work", "hi all", "Echo, say hi", "vote A"]) {
      expect(rehearse({}, { from: "Designer", kind: "agent", text }).calls[0]?.toolName).toBe("skip");
    }
  });

  test("another agent's request by @name is done", () => {
    expect(rehearse({}, { from: "Designer", kind: "agent", text: "@Echo say hi" }).said[0]?.text).toBe("hi");
  });

  test("[B1] an agent told to always answer answers everything from anyone", () => {
    const stage = { role: "Always answer, whoever speaks." };
    expect(rehearse(stage, { from: "Designer", kind: "agent", text: "Noted, Echo." }).said[0]?.text).toBe(
      "Noted, Designer.",
    );
    expect(replyTo("I bought bread", stage)).toBe("Noted, Husam.");
  });
});

describe("what it does", () => {
  test("it enters the space before it speaks, unless the space is active", () => {
    const said = { from: "Husam", text: "hi Echo" };
    expect(rehearse({}, said).calls.map(({ toolName }) => toolName)).toEqual(["enter_space", "send_message"]);
    expect(rehearse({ activeSpaceId: "spc_FAMILY" }, said).calls.map(({ toolName }) => toolName)).toEqual([
      "send_message",
    ]);
  });

  test("it ends with a summary of what it did", () => {
    expect(rehearse({}, { from: "Husam", text: "hi Echo" }).summary).toBe('Answered "Husam" in "Family": greeting.');
  });

  test.each([
    ["Echo, say hello world", "hello world"],
    ['@Echo repeat "a b\nc"', "a b\nc"],
    ["repeat after me: one two, Echo", "one two"],
    ["Echo count to 5", "1, 2, 3, 4, 5"],
    [
      "@Echo explain these figures: Monday: 3, Tuesday: 5, Friday: 2",
      "10 in all, 3.33 on average, the least Friday (2), the most Tuesday (5).",
    ],
    [
      "Echo, could you explain these figures?",
      'Which ones? Give me names with numbers: "explain these figures: Monday: 3, Tuesday: 5".',
    ],
    ["@Echo ping", "pong"],
    ["@Echo what time is it?", "It is 2026-02-18T15:07:00Z."],
    ["@Echo who is here?", 'In "Family": Husam (human), Ahmad (human), Designer (agent), and I.'],
  ])("$0 → $1", (text, reply) => {
    expect(replyTo(text)).toBe(reply);
  });

  test.each(["Echo, who are you?", "@Echo are you an LLM?", "@Echo what are you", "Echo, are you human?"])(
    "it is honest about what it is: %s",
    (text) => {
      expect(replyTo(text)).toMatch(/rehearsal model: a program that follows plain rules, not an LLM/);
    },
  );

  test("it says honestly that it has no rule for a question", () => {
    expect(replyTo("@Echo why is the sky blue?")).toMatch(/no rule for that.*not an LLM/);
  });

  test("it stores a fact as a memory under a slug, and confirms it", () => {
    const { calls, said } = rehearse({}, { from: "Husam", text: "@Echo remember that the wifi password is Tiger 12." });
    expect(calls[0]).toEqual({
      toolName: "set_memories",
      input: { memories: [{ key: "wifi_password", value: "Tiger 12" }] },
    });
    expect(said[0]?.text).toBe("Done: I will remember wifi_password: Tiger 12");
  });

  test("it stores a fact about the sender under the sender's name", () => {
    const { calls } = rehearse({}, { from: "Husam", text: "Echo, remember my birthday is 3 May" });
    expect(calls[0]?.input).toEqual({ memories: [{ key: "husam_birthday", value: "3 May" }] });
  });

  test.each([
    ["@Echo what do you remember?", "I remember wifi_password: Tiger 12; husam_birthday: 3 May"],
    ["@Echo what do you remember about wifi?", "I remember wifi_password: Tiger 12"],
    ["@Echo what is the wifi password?", "I remember wifi_password: Tiger 12"],
    ["@Echo when is my birthday?", "I remember husam_birthday: 3 May"],
    ["@Echo recall tiger", "I remember wifi_password: Tiger 12"],
    ["@Echo do you remember my shoe size?", "I remember nothing about my shoe size."],
  ])("it recalls: %s", (text, reply) => {
    expect(replyTo(text, { memories: { wifi_password: "Tiger 12", husam_birthday: "3 May" } })).toBe(reply);
  });

  test("it forgets what it is told to", () => {
    const { calls } = rehearse(
      { memories: { wifi_password: "x" } },
      { from: "Husam", text: "@Echo forget the wifi password" },
    );
    expect(calls[0]).toEqual({ toolName: "delete_memories", input: { keys: ["wifi_password"] } });
  });

  test("it carries a message to another space, comes back and confirms", () => {
    const { calls, said } = rehearse(twoSpaces, { from: "Husam", text: "@Echo tell Design Team that we ship at 3pm" });
    expect(calls.map(({ toolName, input }) => [toolName, input.spaceId ?? input.text])).toEqual([
      ["enter_space", "spc_WORK"],
      ["send_message", "Husam asks me to tell you: we ship at 3pm"],
      ["enter_space", "spc_FAMILY"],
      ["send_message", 'Done: I told "Design Team".'],
    ]);
    expect(said.map(({ spaceId }) => spaceId)).toEqual(["spc_WORK", "spc_FAMILY"]);
  });

  test("it carries a message to a person who is in another space", () => {
    const { said } = rehearse(twoSpaces, { from: "Husam", text: "Echo, tell Muhammad the meeting is at 3pm" });
    expect(said).toEqual([
      { spaceId: "spc_WORK", text: "Muhammad, Husam asks me to tell you: the meeting is at 3pm" },
      { spaceId: "spc_FAMILY", text: 'Done: I told Muhammad in "Design Team".' },
    ]);
  });

  test("it names its spaces when it is asked to tell somebody unknown", () => {
    const { said } = rehearse(twoSpaces, { from: "Husam", text: "@Echo tell Marketing we won" });
    expect(said[0]?.text).toContain('My spaces are "Family", "Design Team"');
  });

  test("it counts the last vote of each person, and no vote of an agent", () => {
    const history = [
      { senderName: "Husam", senderType: "human", content: "Option A or option B? vote!" },
      { senderName: "Ahmad", senderType: "human", content: "I vote for B" },
      { senderName: "Ahmad", senderType: "human", content: "Option A" },
      { senderName: "Sara", senderType: "human", content: "b" },
      { senderName: "Husam", senderType: "human", content: "vote: A" },
      { senderName: "Designer", senderType: "agent", content: "vote B" },
    ];
    expect(replyTo("@Echo count the votes", { history })).toBe("Votes: A: 2 (Ahmad, Husam); B: 1 (Sara). A leads.");
    expect(replyTo("@Echo count the votes", { history: [] })).toBe("I see no votes here.");
  });

  test("it sets a goal and completes it", () => {
    expect(rehearse({}, { from: "Husam", text: "@Echo goal: Ship the Q4 report" }).calls[0]).toEqual({
      toolName: "set_goals",
      input: { goals: [{ id: "ship_the_q4_report", description: "Ship the Q4 report", status: "active" }] },
    });
    const goals = [{ id: "q4", description: "Ship the Q4 report", status: "active" }];
    expect(rehearse({ goals }, { from: "Husam", text: "@Echo done with q4" }).calls[0]?.input).toEqual({
      goals: [{ id: "q4", status: "completed" }],
    });
    expect(replyTo("@Echo done with q5", { goals })).toBe('I have no goal "q5".');
  });

  test("it writes as many words as asked, always the same", () => {
    const text = replyTo("@Echo write 200 words");
    expect(text?.split(/\s+/)).toHaveLength(200);
    expect(replyTo("@Echo write 200 words")).toBe(text);
    expect(replyTo("Echo, tell me a story", { role: "You are a pirate." })).toMatch(/^Arr, there once was a ship/);
  });

  test.each([
    ["brief", "Hi Husam."],
    ["cheerful", "Hey Husam, great to see you! 🎉"],
    ["formal", "Good day, Husam. I am at your service."],
    ["pirate", "Ahoy, Husam!"],
  ])("its instructions colour its greeting: %s", (word, greeting) => {
    expect(replyTo("hi Echo", { role: `Be ${word}.` })).toBe(greeting);
  });
});

describe("cycles", () => {
  test("it handles the events of a batch one after another, each in its space", () => {
    const { said, summary } = rehearse(
      twoSpaces,
      { from: "Husam", text: "@Echo say one" },
      { from: "Ahmad", text: "what a day" },
      { from: "Sara", text: "Echo, say two", in: "spc_WORK" },
    );
    expect(said).toEqual([
      { spaceId: "spc_FAMILY", text: "one" },
      { spaceId: "spc_WORK", text: "two" },
    ]);
    expect(summary.split("\n")).toEqual([
      'Answered "Husam" in "Family": repeated it.',
      'Read "Ahmad" in "Family": not addressed to me.',
      'Answered "Sara" in "Design Team": repeated it.',
    ]);
  });

  test("it recalls in a batch what an earlier event of the batch made it remember", () => {
    const { said } = rehearse(
      {},
      { from: "Husam", text: "@Echo remember that the code is 7" },
      { from: "Ahmad", text: "@Echo what is the code?" },
    );
    expect(said[1]?.text).toBe("I remember code: 7");
  });

  test("it acts on the last inbox alone", () => {
    const first = rehearse({}, { from: "Husam", text: "@Echo say one" });
    const before = [
      ...first.prompt.slice(1),
      { role: "assistant" as const, content: [{ type: "text" as const, text: first.summary }] },
    ];
    const line = eventLine({}, { from: "Ahmad", text: "@Echo say two" });
    const { calls } = rehearseLines({ activeSpaceId: "spc_FAMILY" }, [line], before);
    expect(calls).toEqual([{ toolName: "send_message", input: { text: "two" } }]);
  });

  test("a failed tool ends the event, not the cycle", () => {
    const { said, summary } = rehearse(
      { broken: ["set_memories"] },
      { from: "Husam", text: "@Echo remember that a is b" },
    );
    expect(said[0]?.text).toBe("I could not keep that.");
    expect(summary).toContain("could not remember a");
    expect(rehearse({ broken: ["enter_space"] }, { from: "Husam", text: "@Echo hi" }).summary).toContain(
      "could not be said",
    );
  });

  test("it announces a service's event only if its instructions say so", () => {
    const line = '  [Service "jira"] {"issue":"PROJ-123"}';
    expect(rehearseLines({}, [line]).calls[0]?.toolName).toBe("skip");
    expect(rehearseLines({ role: 'Announce events in "Family".' }, [line]).said[0]?.text).toBe(
      'Event from jira: {"issue":"PROJ-123"}',
    );
  });

  test("it announces the text of a service's event that has one", () => {
    const role = 'Announce events in "Family".';
    const said = (payload: string) => rehearseLines({ role }, [`  [Service "github"] ${payload}`]).said[0]?.text;
    expect(said('{"event":"push","text":"Mona pushed to main"}')).toBe("Event from github: Mona pushed to main");
    expect(said('{"event":"push","text":7}')).toBe('Event from github: {"event":"push","text":7}');
    expect(said('"plain"')).toBe('Event from github: "plain"');
  });

  test("it says so when the prompt holds no inbox and no trigger", () => {
    const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: "Summarise this." }] }];
    expect(decide(parsePrompt(prompt), [])).toEqual({
      type: "text",
      text: expect.stringContaining("rehearsal model"),
    });
  });
});
