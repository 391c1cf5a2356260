/* pliantctl-screen.c - the live view: a frame at a time, in the terminal's own alternate screen
 *
 * A frame is written over the last one, line by line, each cleared behind its end, so nothing
 * flickers. Text is cut at the right edge, and what does not fit below is counted.
 */
#include <inttypes.h>
#include <langinfo.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "pliantctl-watch.h"
#include "util/utf8.h"

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"
#define LINES_MIN 6 /* for events, if there is room for more than jobs */
#define LINES_OF_JOB 5

/* ---- the terminal ---------------------------------------------------------------------------- */

static struct {
    bool open;
    int signals; /* signalfd */
    struct termios before;
    sigset_t mask;
} terminal = {.signals = -1};

static void write_all(const char *text, size_t n)
{
    while (n > 0) {
        ssize_t done = write(STDOUT_FILENO, text, n);

        if (done <= 0)
            return;
        text += done;
        n -= (size_t)done;
    }
}

static void take_terminal(void)
{
    struct termios raw = terminal.before;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    write_all(ENTER, strlen(ENTER));
    terminal.open = true;
}

static void give_terminal_back(void)
{
    if (!terminal.open)
        return;
    terminal.open = false;
    write_all(LEAVE, strlen(LEAVE));
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
}

void screen_open(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
    sigset_t set;

    fflush(stdout);
    tcgetattr(STDIN_FILENO, &terminal.before);
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, &terminal.mask);
    terminal.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    atexit(give_terminal_back);
    take_terminal();
}

void screen_close(void)
{
    give_terminal_back();
    if (terminal.signals >= 0)
        close(terminal.signals);
    terminal.signals = -1;
    sigprocmask(SIG_SETMASK, &terminal.mask, NULL);
}

int screen_signals(void)
{
    return terminal.signals;
}

bool screen_take(void)
{
    struct signalfd_siginfo info;
    char key;

    while (read(terminal.signals, &info, sizeof info) == (ssize_t)sizeof info)
        switch (info.ssi_signo) {
        case SIGTSTP: /* Ctrl-Z: the shell gets its terminal, and we get it back with SIGCONT */
            give_terminal_back();
            raise(SIGSTOP);
            take_terminal();
            break;
        case SIGCONT:
        case SIGWINCH:
            break; /* the next frame has the new size */
        default:
            return true;
        }
    while (read(STDIN_FILENO, &key, 1) == 1)
        if (key == 'q' || key == 'Q')
            return true;
    return false;
}

/* ---- a frame --------------------------------------------------------------------------------- */

struct frame {
    FILE *out;
    unsigned rows, columns;
    unsigned row, column; /* where the next letter goes */
    bool colours, utf8;
};

static void new_line(struct frame *f)
{
    if (f->row < f->rows)
        fputs(f->row + 1 < f->rows ? "\033[K\r\n" : "\033[K", f->out);
    f->row++;
    f->column = 0;
}

/* Letters up to the right edge. */
static void put(struct frame *f, const char *text)
{
    for (size_t n; *text && f->column < f->columns && f->row < f->rows; text += n) {
        n = utf8_length(text, strlen(text));
        if (n == 0 || (n > 1 && !f->utf8) || (unsigned char)*text < ' ' || *text == 0x7f) {
            fputc('?', f->out);
            n = n ? n : 1;
        } else {
            fwrite(text, 1, n, f->out);
        }
        f->column++;
    }
}

static void putf(struct frame *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void putf(struct frame *f, const char *format, ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(f, text);
}

static void put_in(struct frame *f, enum ctl_colour colour, const char *text)
{
    fputs(ctl_colour(colour, f->colours), f->out);
    put(f, text);
    fputs(ctl_colour(CTL_PLAIN, f->colours), f->out);
}

static void put_state(struct frame *f, const char *state)
{
    put_in(f, ctl_colour_of(state), state);
}

/* ---- parallelism over time ------------------------------------------------------------------- */

static const struct watch_history *find_history(const struct watch *w, const char *job_id)
{
    for (size_t i = 0; i < w->histories.n; i++)
        if (strcmp(w->histories.v[i].job_id, job_id) == 0)
            return &w->histories.v[i];
    return NULL;
}

/* The most that was in use in the seconds [from, to). */
static uint32_t most(const struct watch_history *h, int64_t from, int64_t to)
{
    uint32_t max = 0;

    for (int64_t s = from; s < to && s <= h->last_s; s++)
        max = h->used[s % WATCH_SECONDS] > max ? h->used[s % WATCH_SECONDS] : max;
    return max;
}

static void put_history(struct frame *f, const struct watch_history *h)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[] = {" ", ".", ".", ":", ":", "|", "|", "#", "#"};
    int64_t begin = h->first_s, step, width = (int64_t)f->columns - 24;
    char span[CTL_TIME_TEXT];
    uint32_t peak;

    if (h->last_s - begin >= WATCH_SECONDS)
        begin = h->last_s - WATCH_SECONDS + 1;
    if (width < 8)
        return;
    step = (h->last_s - begin) / width + 1;
    begin -= begin % step; /* columns keep their seconds as time goes on */
    peak = most(h, begin < h->first_s ? h->first_s : begin, h->last_s + 1);
    put(f, "  slots   ");
    for (int64_t s = begin; s <= h->last_s; s += step) {
        uint32_t used = most(h, s < h->first_s ? h->first_s : s, s + step);
        size_t level = peak ? (size_t)((uint64_t)used * 8 / peak) : 0;

        level = used && !level ? 1 : level;
        put(f, f->utf8 ? blocks[level] : letters[level]);
    }
    putf(f, " %" PRIu32 " at most, %s", peak, ctl_span(span, (h->last_s - begin) * 1000));
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void put_vertices(struct frame *f, const struct doc *job)
{
    const char *separator = "  runs    ";

    for (const struct doc *v = ctl_first(job, "vertices"); v; v = v->next) {
        const struct doc *min = ctl_first(v, "bounds"), *max = min ? min->next : NULL;

        putf(f, "%s%s ", separator, v->key);
        put_in(f, CTL_BOLD, ctl_is_undecided(job, v) ? "undecided" : ctl_text(v, "parallelism"));
        putf(f, " of %s (%s..%s)", ctl_text(v, "desired"), min ? min->text : "?",
             max ? max->text : "?");
        separator = ", ";
    }
    new_line(f);
}

static void put_next(struct frame *f, const struct doc *job, int64_t elapsed_ms)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    put(f, "  next    ");
    if (out) {
        ctl_next_words(out, doc_get(job, "next"), elapsed_ms);
        fclose(out);
        put(f, text);
        free(text);
    }
    new_line(f);
}

static void put_job(struct frame *f, const struct watch *w, const struct doc *job)
{
    const struct watch_history *h = find_history(w, ctl_text(job, "job_id"));
    const struct doc *slots = doc_get(job, "slots"), *checkpoint = doc_get(job, "checkpoint");
    int64_t elapsed_ms = watch_now_ms() - w->picture_at_ms;
    char span[CTL_TIME_TEXT];

    put_in(f, CTL_BOLD, ctl_text(job, "name"));
    putf(f, " (%.8s)  ", ctl_text(job, "job_id"));
    put_state(f, ctl_text(job, "state"));
    put(f, ", ");
    put_state(f, ctl_text(job, "job_status"));
    if (slots)
        putf(f, "  %s of %s slots in use", ctl_text(slots, "used"), ctl_text(slots, "offered"));
    putf(f, "  %s restarts, %s rescales", ctl_text(job, "restarts"), ctl_text(job, "rescales"));
    if (checkpoint && checkpoint->kind == DOC_MAP)
        putf(f, "  checkpoint %s, %s ago", ctl_text(checkpoint, "id"),
             ctl_span(span, (ctl_int(checkpoint, "age_ms") + elapsed_ms) / 1000 * 1000));
    new_line(f);
    put_vertices(f, job);
    if (h)
        put_history(f, h);
    new_line(f);
    put_next(f, job, elapsed_ms);
    new_line(f);
}

static void put_jobs(struct frame *f, const struct watch *w, unsigned last_row)
{
    const struct doc *job = watch_first_job(w);
    unsigned left = 0;

    if (!job && w->picture_at_ms)
        put(f, "no jobs"), new_line(f);
    for (; job; job = *w->job_id ? NULL : job->next)
        if (f->row + LINES_OF_JOB <= last_row)
            put_job(f, w, job);
        else
            left++;
    if (left > 0) {
        putf(f, "and %u more jobs", left);
        new_line(f);
    }
}

/* ---- head and foot --------------------------------------------------------------------------- */

static void put_nodes(struct frame *f, const struct watch *w)
{
    const struct doc *node = w->picture.root ? ctl_first(w->picture.root, "nodes") : NULL;
    int64_t up = 0, other = 0, slots = 0, used = 0;

    if (!node)
        return;
    for (; node; node = node->next) {
        bool is_up = strcmp(ctl_text(node, "state"), "up") == 0;

        up += is_up;
        other += !is_up;
        slots += ctl_int(node, "slots");
        used += ctl_int(node, "used");
    }
    putf(f, "  %" PRId64 " nodes up", up);
    if (other)
        putf(f, ", %" PRId64 " others", other);
    putf(f, "; %" PRId64 " of %" PRId64 " slots in use", used, slots);
}

static void put_head(struct frame *f, const struct watch *w)
{
    char text[CTL_TIME_TEXT];

    putf(f, "%s  %s", ctl_clock(text, ctl_unix_ms()), w->c->target.endpoint);
    put_nodes(f, w);
    if (!w->connected) {
        put(f, "  ");
        put_in(f, CTL_RED, "no connection, trying");
        putf(f, " (%s)", ctl_span(text, (watch_now_ms() - w->lost_at_ms) / 1000 * 1000));
    }
    new_line(f);
    new_line(f);
}

static void put_lines(struct frame *f, const struct watch *w)
{
    size_t room = f->rows > f->row + 1 ? f->rows - f->row - 1 : 0;
    size_t kept = w->n_lines < WATCH_LINES ? w->n_lines : WATCH_LINES;
    size_t n = kept < room ? kept : room;

    for (size_t i = w->n_lines - n; i < w->n_lines; i++) {
        put(f, w->lines[i % WATCH_LINES]);
        new_line(f);
    }
}

static void frame_size(struct frame *f)
{
    struct winsize size;

    f->rows = 24;
    f->columns = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
        f->rows = size.ws_row;
        f->columns = size.ws_col;
    }
}

void screen_draw(const struct watch *w)
{
    struct frame f = {.colours = ctl_colourful(),
                      .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0};
    char *text = NULL;
    size_t size = 0;

    f.out = open_memstream(&text, &size);
    if (!f.out)
        return;
    frame_size(&f);
    fputs("\033[H", f.out);
    put_head(&f, w);
    put_jobs(&f, w, f.rows > LINES_MIN ? f.rows - LINES_MIN : f.rows);
    put_lines(&f, w);
    put_in(&f, CTL_DIM, "q ends this view");
    fputs("\033[J", f.out);
    fclose(f.out);
    write_all(text, size);
    free(text);
}
