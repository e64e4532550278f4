// Opens many streams at once and measures how late each event of each stream arrives.
//
//     cc -O2 -o paced_client paced_client.c
//     ./paced_client PORT STREAMS REQUEST_FILE TIMES_FILE MARK [--until-last [SPREAD]]
//
// The one file holds a whole HTTP request, the other the microseconds after it at which each event
// is due, one in a line. MARK stands once in each event (`data: ` in SSE); an answer ends with the
// last HTTP chunk or, where that is said (a WebSocket), with the last mark. SPREAD is over how many
// seconds the streams begin; without it they begin at once.
// Prints one line of JSON, times in milliseconds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { KEPT = 32, BUFFER = 1 << 18, AT_ONCE = 64, PATIENCE = 180 };
static const char LAST[] = "0\r\n\r\n";

struct stream {
    int fd, events, kept, sent, answered, over;
    double began;
    char tail[KEPT];  // the end of what came before: a mark may be split
};

static struct stream *streams;
static float *late;
static size_t measured;
static int opened, over, whole, errors, refused, events_due, poll_fd, until_last;
static double *times;
static char *event_mark, request[1 << 20], buffer[BUFFER + KEPT];
static long request_size, mark_size;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void end(struct stream *s, int is_whole) {
    close(s->fd);
    s->over = 1;
    over++;
    if (is_whole) whole++;
    else errors++;
}

static void start(int port) {
    struct stream *s = &streams[opened];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT, .data.u32 = opened++};
    int one = 1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (s->fd < 0) { s->over = 1; over++; errors++; return; }
    setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(s->fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS) end(s, 0);
    else epoll_ctl(poll_fd, EPOLL_CTL_ADD, s->fd, &wanted);
}

static void send_request(struct stream *s, unsigned index) {
    struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = index};
    s->began = now();
    s->sent = 1;
    if (write(s->fd, request, request_size) != request_size) end(s, 0);
    else epoll_ctl(poll_fd, EPOLL_CTL_MOD, s->fd, &wanted);
}

static void receive(struct stream *s) {
    ssize_t size = read(s->fd, buffer + KEPT, BUFFER);
    double at = now();
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) { end(s, 0); return; }
    char *begin = buffer + KEPT - s->kept, *stop = buffer + KEPT + size, *mark = begin;
    memcpy(begin, s->tail, s->kept);
    if (!s->answered) {
        s->answered = 1;
        const char *accepted = until_last ? "HTTP/1.1 101" : "HTTP/1.1 200";
        if (stop - begin < 12 || memcmp(begin, accepted, 12)) refused++;
    }
    while ((mark = memmem(mark, stop - mark, event_mark, mark_size))) {
        if (s->events < events_due) late[measured++] = at - s->began - times[s->events];
        s->events++;
        mark += mark_size;
    }
    if (until_last && s->events >= events_due) { end(s, s->events == events_due); return; }
    if (!until_last && stop - begin >= 5 && !memcmp(stop - 5, LAST, 5)) { end(s, s->events == events_due); return; }
    // Less than a mark is kept, so that no mark is counted twice.
    s->kept = stop - begin < mark_size - 1 ? stop - begin : mark_size - 1;
    memcpy(s->tail, stop - s->kept, s->kept);
}

static int compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double quantile(double share) {
    return measured ? late[(size_t)((measured - 1) * share)] * 1e3 : 0;
}

int main(int count, char **words) {
    if (count < 6 || count > 8) return 2;
    until_last = count >= 7;
    double spread = count == 8 ? atof(words[7]) : 0;
    event_mark = words[5];
    mark_size = strlen(event_mark);
    // The end of the last HTTP chunk may be split as a mark may.
    if (mark_size <= (long)sizeof LAST - 1 || mark_size > KEPT) return 2;
    int port = atoi(words[1]), number = atoi(words[2]);
    FILE *file = fopen(words[3], "r"), *due = fopen(words[4], "r");
    if (!file || !due) return 2;
    request_size = fread(request, 1, sizeof request, file);
    times = malloc(sizeof *times << 20);
    for (double at; events_due < 1 << 20 && fscanf(due, "%lf", &at) == 1;) {
        times[events_due++] = at / 1e6;
    }
    streams = calloc(number, sizeof *streams);
    late = malloc((size_t)number * events_due * sizeof *late);
    poll_fd = epoll_create1(0);
    static struct epoll_event found[1024];
    double began = now();
    while (over < number && now() < began + PATIENCE) {
        double due_by = spread > 0 ? number * (now() - began) / spread : number;
        for (int n = 0; n < AT_ONCE && opened < number && opened < due_by; n++) start(port);
        int ready = epoll_wait(poll_fd, found, 1024, opened == number ? 100 : spread > 0);
        for (int n = 0; n < ready; n++) {
            struct stream *s = &streams[found[n].data.u32];
            if (s->over) continue;
            if (!s->sent && found[n].events & EPOLLOUT) send_request(s, found[n].data.u32);
            if (!s->over && found[n].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(s);
        }
    }
    double wall = now() - began;
    qsort(late, measured, sizeof *late, compare);
    printf("{\"whole\": %d, \"errors\": %d, \"refused\": %d, \"wall\": %.3f, \"p50\": %.1f, "
           "\"p99\": %.1f, \"most\": %.1f}\n",
           whole, errors + number - over, refused, wall, quantile(.5), quantile(.99), quantile(1));
    return 0;
}
