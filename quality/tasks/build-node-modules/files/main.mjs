import { plural, VERSION } from "./plural.mjs";

if (VERSION !== 1) throw new Error("another version");
console.log(plural(3, "apple"));
