/* How fast do two ranks talk? Latency by ping-pong, bandwidth by a window of messages in flight.
 *
 * Options: --only latency|bandwidth   --min BYTES   --max BYTES   --repeats N   --milliseconds N
 * Output per size: {"test":"latency","size":8,"unit":"us","samples":[…]}
 *                  {"test":"bandwidth","size":8,"unit":"MB/s","window":64,"samples":[…]}
 *
 * A sample is the mean over as many exchanges as fit into the given milliseconds (10); several
 * samples show the spread. Latency is half of a round trip. One MB is 1,000,000 bytes. The data of
 * each sample is checked outside the timed part. Receive slots of a window do not overlap, so large
 * windows are shortened to IN_FLIGHT bytes. Ranks beyond the second only wait. */

#include "probe.h"

enum { WINDOW = 64, IN_FLIGHT = 32 << 20, MOST_REPEATS = 100, DATA = 1, CONTROL = 2 };

typedef void Exchange(int peer, size_t size, int window);

static int rank;
static unsigned char *out, *in;
static MPI_Request requests[WINDOW];

static int window_of(size_t size)
{
    size_t fitting = IN_FLIGHT / (size > 0 ? size : 1);
    return fitting < 1 ? 1 : fitting < WINDOW ? (int)fitting : WINDOW;
}

static void ping_pong(int peer, size_t size, int window)
{
    (void)window;
    if (rank == 0) {
        MPI_Send(out, (int)size, MPI_BYTE, peer, DATA, MPI_COMM_WORLD);
        MPI_Recv(in, (int)size, MPI_BYTE, peer, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, (int)size, MPI_BYTE, peer, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, (int)size, MPI_BYTE, peer, DATA, MPI_COMM_WORLD);
    }
}

/* Rank 0 sends a window of messages; an empty answer says that all have arrived. */
static void stream_window(int peer, size_t size, int window)
{
    if (rank == 0) {
        for (int i = 0; i < window; i++)
            MPI_Isend(out, (int)size, MPI_BYTE, peer, DATA, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        MPI_Recv(NULL, 0, MPI_BYTE, peer, CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        for (int i = 0; i < window; i++)
            MPI_Irecv(in + (size_t)i * size, (int)size, MPI_BYTE, peer, DATA, MPI_COMM_WORLD,
                      &requests[i]);
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, peer, CONTROL, MPI_COMM_WORLD);
    }
}

static unsigned char pattern(int sender, long sample, size_t i)
{
    return (unsigned char)(i * 7 + (size_t)sample * 13 + (size_t)sender * 101 + 1);
}

static void fill(long sample, size_t size, size_t received)
{
    for (size_t i = 0; i < size; i++)
        out[i] = pattern(rank, sample, i);
    memset(in, 0, received);
}

static void verify(int peer, long sample, size_t size, int slots)
{
    for (int slot = 0; slot < slots; slot++)
        for (size_t i = 0; i < size; i++)
            if (in[(size_t)slot * size + i] != pattern(peer, sample, i))
                fail("A message arrived with wrong data.");
}

/* Rank 0 decides how many exchanges follow, and times them once the peer is ready. Seconds. */
static double timed(Exchange *exchange, int peer, size_t size, int window, long *count)
{
    if (rank == 0) {
        MPI_Send(count, 1, MPI_LONG, peer, CONTROL, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, peer, CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(count, 1, MPI_LONG, peer, CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, peer, CONTROL, MPI_COMM_WORLD);
    }
    double begin = seconds_now();
    for (long i = 0; i < *count; i++)
        exchange(peer, size, window);
    return seconds_now() - begin;
}

/* Double the number of exchanges until they fill the wanted time; this is the warm-up as well. */
static long calibrate(Exchange *exchange, int peer, size_t size, int window, double wanted)
{
    long count = 1, stop = 0;
    if (rank == 0) {
        double spent = timed(exchange, peer, size, window, &count);
        while (spent < wanted && count < 1L << 30) {
            count *= 2;
            spent = timed(exchange, peer, size, window, &count);
        }
        timed(exchange, peer, size, window, &stop);
        return (long)((double)count * wanted / spent) + 1;
    }
    do
        timed(exchange, peer, size, window, &count);
    while (count > 0);
    return 0;
}

static void measure(const char *test, size_t size, int repeats, double wanted)
{
    int latency = strcmp(test, "latency") == 0, window = latency ? 1 : window_of(size);
    Exchange *exchange = latency ? ping_pong : stream_window;
    double samples[MOST_REPEATS];
    int peer = 1 - rank;
    long count = calibrate(exchange, peer, size, window, wanted);
    for (int repeat = 0; repeat < repeats; repeat++) {
        fill(repeat, size, size * (size_t)window);
        double spent = timed(exchange, peer, size, window, &count);
        if (latency || rank == 1)
            verify(peer, repeat, size, window);
        samples[repeat] = latency ? 1e6 * spent / (2.0 * (double)count)
                                  : 1e-6 * (double)size * window * (double)count / spent;
    }
    if (rank == 0) {
        printf("{\"test\":\"%s\",\"size\":%zu,\"unit\":\"%s\",\"window\":%d,\"samples\":", test, size,
               latency ? "us" : "MB/s", window);
        print_list(samples, repeats);
        puts("}");
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *only = option(argc, argv, "--only", "");
    size_t smallest = (size_t)number_option(argc, argv, "--min", 0);
    size_t largest = (size_t)number_option(argc, argv, "--max", 4 << 20);
    int repeats = (int)number_option(argc, argv, "--repeats", 7);
    double wanted = 1e-3 * (double)number_option(argc, argv, "--milliseconds", 10);
    if (ranks < 2)
        fail("This probe needs two ranks.");
    if (repeats < 1 || repeats > MOST_REPEATS || largest > 1 << 30)
        fail("This probe takes 1 to 100 repeats and messages of at most 1 GiB.");
    if (rank < 2) {
        size_t bytes = largest * (size_t)window_of(largest);
        out = allocate(largest);
        in = allocate(bytes > IN_FLIGHT ? bytes : IN_FLIGHT);
        const char *tests[] = {"latency", "bandwidth"};
        for (int test = 0; test < 2; test++)
            for (size_t size = 0; size <= largest; size = size ? 2 * size : 1)
                if (size >= smallest && (test == 0 || size > 0) &&
                    (*only == '\0' || strcmp(only, tests[test]) == 0))
                    measure(tests[test], size, repeats, wanted);
        free(out);
        free(in);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
