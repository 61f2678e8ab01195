// Meetings are {start, end} in hours; the end is not part of the meeting.
function overlaps(a, b) {
  return a.start < b.end && b.start < a.end;
}

function conflicts(meetings, wanted) {
  return meetings.filter((meeting) => overlaps(meeting, wanted));
}

module.exports = { overlaps, conflicts };
