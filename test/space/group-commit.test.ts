import { expect, test } from "vitest";
import { createGroupCommit } from "../../src/space/group-commit.ts";

/** A disk whose commits end when the test says so. */
const openGathering = () => {
  const commits: PromiseWithResolvers<void>[] = [];
  const stored: string[] = [];
  const sync = (): Promise<void> => {
    const commit = Promise.withResolvers<void>();
    commits.push(commit);
    return commit.promise;
  };
  const groupCommit = createGroupCommit({ sync });
  const say = (text: string): Promise<string> =>
    groupCommit.join(() => {
      stored.push(`${text} in ${commits.length}`);
      return text;
    });
  return { commits, stored, say, groupCommit };
};

test("who comes alone does not wait", async () => {
  const { commits, stored, say } = openGathering();
  const said = say("one");
  expect(stored).toEqual(["one in 0"]);
  expect(await said).toBe("one");
  commits[0]?.resolve();
  await commits[0]?.promise;
  await Promise.resolve();
  void say("two");
  expect(stored).toEqual(["one in 0", "two in 1"]);
});

test("posts that come while one is being stored are stored in one commit, in their order", async () => {
  const { commits, stored, say } = openGathering();
  await say("one");
  const together = [say("two"), say("three"), say("four")];
  await Promise.resolve();
  expect(stored).toEqual(["one in 0"]);
  commits[0]?.resolve();
  expect(await Promise.all(together)).toEqual(["two", "three", "four"]);
  // The second commit begins in the turn of the first of them, which the platform ends after the last.
  expect(stored).toEqual(["one in 0", "two in 1", "three in 2", "four in 2"]);
  const late = say("five");
  await Promise.resolve();
  expect(stored).toHaveLength(4);
  commits[1]?.resolve();
  await late;
  expect(stored.at(-1)).toBe("five in 2");
});

test("one that fails keeps no other from being stored", async () => {
  const { commits, stored, say, groupCommit } = openGathering();
  await say("one");
  const failing = groupCommit.join(() => {
    throw new Error("a bug");
  });
  const together = [say("two"), say("three")];
  commits[0]?.reject(new Error("the disk is full"));
  await expect(failing).rejects.toThrow("a bug");
  expect(await Promise.all(together)).toEqual(["two", "three"]);
  expect(stored).toEqual(["one in 0", "two in 1", "three in 2"]);
});
