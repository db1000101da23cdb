import { describe, expect, test } from "vitest";
import { featureHashing, hashedFeatures } from "../../../src/models/embedders/feature-hashing.ts";

const likeness = (one: string, other: string): number => {
  const [a, b] = [hashedFeatures(one), hashedFeatures(other)];
  const dot = a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
  return dot / (Math.hypot(...a) * Math.hypot(...b) || 1);
};

describe("feature hashing", () => {
  test("the same text is always the same vector, whatever its case and accents", () => {
    expect(hashedFeatures("Café Society")).toEqual(hashedFeatures("cafe society"));
    expect(hashedFeatures("")).toEqual(hashedFeatures("?!"));
  });

  test("compares letters: misspelt and inflected words are similar, synonyms are not", () => {
    expect(likeness("programing", "programming")).toBeGreaterThan(0.5);
    expect(likeness("the scheduling of launches", "schedule the launch")).toBeGreaterThan(featureHashing.leastLikeness);
    expect(likeness("car", "automobile")).toBeLessThan(featureHashing.leastLikeness);
  });

  test.each([
    ["First", "Second archival entry with metadata"],
    ["metadata", "First archival entry"],
    ["budget of the quarter", "tea for everybody at four"],
  ])("%j and %j have nothing in common", (one, other) => {
    expect(likeness(one, other)).toBeLessThan(featureHashing.leastLikeness);
  });
});
