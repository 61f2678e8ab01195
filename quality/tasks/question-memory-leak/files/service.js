const { remember, forget } = require("./sessions");
const { measure } = require("./metrics");

function handle(request) {
  const session = remember(request.user);
  try {
    return measure(request.path, () => session.count++);
  } finally {
    forget(request.user);
  }
}

module.exports = { handle };
