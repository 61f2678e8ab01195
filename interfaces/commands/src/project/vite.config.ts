import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { apiUrl } from "./src/generated/address.ts";

// For an API that refuses calls from other pages: enter /api-proxy as the address in the connection panel. The
// development server passes such calls on to this address; API_URL names another.
const target = process.env.API_URL ?? apiUrl;

export default defineConfig({
  plugins: [react()],
  server: {
    proxy: {
      "/api-proxy": { target, changeOrigin: true, rewrite: (path) => path.replace(/^\/api-proxy/, "") },
    },
  },
  test: {
    environment: "jsdom",
    include: ["tests/*.test.{ts,tsx}"],
  },
});
