/* pliantctl-watch.h - what pliantctl watch knows, and the screen that shows it
 *
 * The picture is the service's latest SNAPSHOT (of one job: its STATUS); events say what happened
 * and when a new picture is worth asking for.
 */
#ifndef PLIANT_TOOLS_PLIANTCTL_WATCH_H
#define PLIANT_TOOLS_PLIANTCTL_WATCH_H

#include "pliantctl.h"

#define WATCH_LINES 64    /* events kept for the screen */
#define WATCH_SECONDS 600 /* how far back the line of parallelism goes */

/* Slots in use, second by second. */
struct watch_history {
    char job_id[40];
    int64_t first_s, last_s;      /* seconds of the monotonic clock */
    uint32_t used[WATCH_SECONDS]; /* by second % WATCH_SECONDS */
};

struct watch {
    struct ctl *c;
    struct rpc_link *events; /* NULL: not yet */
    char events_endpoint[512];
    char job_id[40], job_name[160]; /* "" : all jobs */
    bool json, screen;

    /* the stream */
    uint64_t epoch, seen; /* of the last event, or of the snapshot that it goes on from */
    bool synced;
    bool gap;      /* it was, and what was missed since is not known yet */
    bool ended;    /* the job, as STATUS says; its last events may still be on their way */
    uint64_t last; /* once it has ended: there are none after this one; UINT64_MAX: not known yet */

    /* the picture: SNAPSHOT's or STATUS's reply */
    struct doc_file picture;
    int64_t picture_at_ms; /* monotonic; 0: none yet */
    struct VEC(struct watch_history) histories;

    /* the connection */
    bool connected;
    int64_t heard_at_ms, lost_at_ms, opened_at_ms;
    int64_t pinged_at_ms, asked_at_ms, subscribed_at_ms;
    uint64_t ping, snapshot, status; /* sequences of what was asked and not answered; 0: nothing */
    bool refresh;                    /* something happened that changes the picture */

    char *lines[WATCH_LINES]; /* newest at n_lines - 1, modulo */
    size_t n_lines;
    bool over;
};

int64_t watch_now_ms(void); /* monotonic */

/* The jobs of the picture, one after the other; NULL: no more. */
const struct doc *watch_first_job(const struct watch *w);

/* ---- pliantctl-screen.c ---------------------------------------------------------------------- */

/* Take the terminal; it is given back at the end of the program at the latest. */
void screen_open(void);
void screen_close(void);
int screen_signals(void); /* descriptor to poll */
/* Keys and signals. true: the user wants to go. */
bool screen_take(void);
void screen_draw(const struct watch *w);

#endif
