import { createContext } from "react";

/** The names of the spaces that the person of this page is in, by their ids. */
export const OwnSpacesContext = createContext<ReadonlyMap<string, string>>(new Map());

/** The names of those that are confidential, as a part of a sentence; empty where none is. */
export const ConfidentialSpacesContext = createContext("");
