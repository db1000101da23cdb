import { APICallError } from "ai";

/** The provider turned the request down before it generated anything: nothing is billed. */
export const isRefusal = (error: unknown): boolean => APICallError.isInstance(error) && (error.statusCode ?? 0) >= 400;
