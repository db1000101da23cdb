import fc from "fast-check";
import { expect, test } from "vitest";
import { absentIn, maxMentionMarks, mentionsIn } from "../../src/shared/mentions.ts";

const named = (...names: string[]) => names.map((name) => ({ id: name, name }));
const members = named("Ann", "Ann Lee", "Data Analyst", "Zoë", "Ana María", "小明", "C++");

test.each([
  ["hello @Ann", ["Ann"]],
  ["hello @ann, how are you", ["Ann"]],
  ["@Ann Lee: yes", ["Ann Lee"]],
  ["@ANN LEE and @ann", ["Ann", "Ann Lee"]],
  ["@Annabel", []],
  ["@Ann_", []],
  ["mail ann@Ann.com", []],
  ["(@Ann)", ["Ann"]],
  ["@data analyst's report", ["Data Analyst"]],
  ["@Data  Analyst", []],
  ["@Zoe\u0308!", ["Zoë"]],
  ["@ana maría", ["Ana María"]],
  ["@小明你好", ["小明"]],
  ["use @C++", ["C++"]],
  ["Ann", []],
  ["@@Ann", ["Ann"]],
  ["@", []],
])("%s mentions %j", (text, expected) => {
  expect(mentionsIn(text, members)).toEqual(expected);
});

test("members who share a name are all meant", () => {
  const twins = [
    { id: "1", name: "Sam" },
    { id: "2", name: "sam" },
  ];
  expect(mentionsIn("@SAM", twins)).toEqual(["1", "2"]);
});

test("[B3] only the first maxMentionMarks marks of a message are looked at", () => {
  const text = `${"@ ".repeat(maxMentionMarks)}@Ann`;
  expect(mentionsIn(text, members)).toEqual([]);
});

test("any name between spaces is found", () => {
  const word = fc.stringMatching(/^[a-z]{1,6}( [a-z]{1,6})?$/);
  fc.assert(
    fc.property(fc.uniqueArray(word, { minLength: 1, maxLength: 8 }), fc.nat(), (names, pick) => {
      const name = names[pick % names.length] ?? "";
      expect(mentionsIn(`so @${name} . `, named(...names))).toEqual([name]);
    }),
  );
});

test("an absent name is a member's of another space, and nobody's here", () => {
  const here = { id: "here", members: [{ id: "1", name: "Sara" }] };
  const there = {
    id: "there",
    members: [
      { id: "2", name: "Sara Lee" },
      { id: "3", name: "SARA" },
      { id: "4", name: "Sam" },
    ],
  };
  expect(absentIn([here, there], "here", "@sara, where are @sara lee and @Nobody?")).toEqual(["Sara Lee"]);
  expect(absentIn([here, there], "there", "@Sam")).toEqual([]);
});
