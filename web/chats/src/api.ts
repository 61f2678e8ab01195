// The process of this page. A stream of a chat begins with the whole chat.
import { processOf } from "../../common/process";

export const { problemOf, logIn, openSession, forgetSession, logOut, call, readEvents } = processOf({
  secretName: "dragoman-chats-secret",
  base: "/api/v1",
  subject: "Dragoman",
  command: "dragoman serve",
  drawsEach: false,
});

/** The page of a server for other machines asks for a token; on this machine a link brings it. */
export const isServer = () => location.protocol === "https:";
