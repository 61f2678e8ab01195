const open = new Map();

const remember = (user) => open.set(user, open.get(user) ?? { count: 0 }).get(user);
const forget = (user) => open.delete(user);

module.exports = { remember, forget };
