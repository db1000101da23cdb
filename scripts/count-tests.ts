import { readFileSync } from "node:fs";
import { argv } from "node:process";

/** Prints `N passed, N failed` of vitest's JSON report; fails if a test failed, a file could not run or none ran. */
type Report = {
  numPassedTests: number;
  numFailedTests: number;
  testResults: { status: string; assertionResults: [] }[];
};

const report = JSON.parse(readFileSync(argv[2] ?? "", "utf8")) as Report;
const broken = report.testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0);
const failed = report.numFailedTests + broken.length;
console.log(`${report.numPassedTests} passed, ${failed} failed`);
process.exitCode = failed > 0 || report.numPassedTests === 0 ? 1 : 0;
