/* Is this MPI correct? Hello, ring and allreduce, each with a result that is known beforehand.
 *
 * Output, one line per rank:  {"rank":0,"host":"…","pid":123}
 * and one line per check:     {"check":"ring","passed":true,"detail":"…"}
 *
 * The verdict of every rank travels to rank 0 in ordinary messages, so that a collective operation
 * that is wrong cannot vouch for itself. */

#include "probe.h"

enum { TEXT = 200, LARGE = 1 << 18, REDUCED = 10000 };

typedef struct {
    int wrong;
    char detail[TEXT];
} Verdict;

static int rank, ranks, failures;

/* Bring all verdicts together: the first wrong one counts. Every rank learns it. */
static void conclude(const char *name, Verdict mine)
{
    Verdict verdict = mine;
    if (rank == 0) {
        for (int peer = 1; peer < ranks; peer++) {
            Verdict other;
            MPI_Recv(&other, sizeof other, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (other.wrong && !verdict.wrong)
                verdict = other;
        }
        printf("{\"check\":\"%s\",\"passed\":%s,\"detail\":\"%s\"}\n", name,
               verdict.wrong ? "false" : "true", verdict.detail);
        fflush(stdout);
        if (verdict.wrong)
            fprintf(stderr, "Check %s failed: %s\n", name, verdict.detail);
        failures += verdict.wrong;
    } else {
        MPI_Send(&mine, sizeof mine, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

/* Every rank tells where it runs. Its rank must be the one the message came from. */
static void hello(void)
{
    struct {
        int rank;
        long pid;
        char host[MPI_MAX_PROCESSOR_NAME];
    } self = {rank, (long)getpid(), ""};
    int length;
    Verdict verdict = {0, ""};
    MPI_Get_processor_name(self.host, &length);
    for (char *c = self.host; *c; c++) /* a name that would break JSON is not one */
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            *c = '?';
    if (rank == 0) {
        for (int peer = 0; peer < ranks; peer++) {
            if (peer > 0)
                MPI_Recv(&self, sizeof self, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("{\"rank\":%d,\"host\":\"%s\",\"pid\":%ld}\n", self.rank, self.host, self.pid);
            if (self.rank != peer && !verdict.wrong) {
                verdict.wrong = 1;
                snprintf(verdict.detail, TEXT, "rank %d calls itself %d", peer, self.rank);
            }
        }
        if (!verdict.wrong)
            snprintf(verdict.detail, TEXT, "%d of %d ranks answered", ranks, ranks);
    } else {
        MPI_Send(&self, sizeof self, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    conclude("hello", verdict);
}

/* A number goes round; every rank adds its own. */
static void ring(void)
{
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    long token = 0, expected = 10L * ranks * (ranks - 1) / 2;
    Verdict verdict = {0, ""};
    for (int lap = 0; lap < 10; lap++) {
        if (rank == 0) {
            MPI_Request request;
            MPI_Isend(&token, 1, MPI_LONG, next, 3, MPI_COMM_WORLD, &request);
            long received = -1;
            MPI_Recv(&received, 1, MPI_LONG, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            token = received;
        } else {
            MPI_Recv(&token, 1, MPI_LONG, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            token += rank;
            MPI_Send(&token, 1, MPI_LONG, next, 3, MPI_COMM_WORLD);
        }
    }
    verdict.wrong = rank == 0 && token != expected;
    snprintf(verdict.detail, TEXT, "10 laps gave %ld, expected %ld", token, expected);
    conclude("ring", verdict);
}

/* A megabyte from every rank to the next: large enough for the transport's path for big messages. */
static void large_ring(void)
{
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    int *out = allocate(LARGE * sizeof *out), *in = allocate(LARGE * sizeof *in);
    Verdict verdict = {0, ""};
    for (int i = 0; i < LARGE; i++) {
        out[i] = rank * LARGE + i;
        in[i] = -1;
    }
    MPI_Sendrecv(out, LARGE, MPI_INT, next, 4, in, LARGE, MPI_INT, previous, 4, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    snprintf(verdict.detail, TEXT, "%d numbers arrived as they were sent", LARGE);
    for (int i = 0; i < LARGE && !verdict.wrong; i++)
        if (in[i] != previous * LARGE + i) {
            verdict.wrong = 1;
            snprintf(verdict.detail, TEXT, "number %d from rank %d is %d, expected %d", i, previous,
                     in[i], previous * LARGE + i);
        }
    free(out);
    free(in);
    conclude("ring of large messages", verdict);
}

/* Allreduce of one type: fill element i of rank r of n, reduce, compare. All expected values are whole
 * numbers that every type holds exactly. */
#define ALLREDUCE(function, type, mpi_type, operation, name, own, expected)                       \
    static void function(void)                                                                    \
    {                                                                                             \
        type *in = allocate(REDUCED * sizeof *in), *out = allocate(REDUCED * sizeof *out);        \
        const long r = rank, n = ranks;                                                           \
        Verdict verdict = {0, ""};                                                                \
        for (long i = 0; i < REDUCED; i++) {                                                      \
            in[i] = (type)(own);                                                                  \
            out[i] = (type)-1;                                                                    \
        }                                                                                         \
        MPI_Allreduce(in, out, REDUCED, mpi_type, operation, MPI_COMM_WORLD);                     \
        snprintf(verdict.detail, TEXT, "%d results are right on every rank", REDUCED);            \
        for (long i = 0; i < REDUCED && !verdict.wrong; i++)                                      \
            if (out[i] != (type)(expected)) {                                                     \
                verdict.wrong = 1;                                                                \
                snprintf(verdict.detail, TEXT, "result %ld on rank %ld of %ld is %g, expected %g", \
                         i, r, n, (double)out[i], (double)(type)(expected));                      \
            }                                                                                     \
        free(in);                                                                                 \
        free(out);                                                                                \
        conclude("allreduce of " name, verdict);                                                  \
    }

ALLREDUCE(sum_int, int, MPI_INT, MPI_SUM, "int, sum", r + i, n * (n - 1) / 2 + n * i)
ALLREDUCE(sum_long, long, MPI_LONG, MPI_SUM, "long, sum", r * i, i * (n * (n - 1) / 2))
ALLREDUCE(sum_double, double, MPI_DOUBLE, MPI_SUM, "double, sum", r + i, n * (n - 1) / 2 + n * i)
ALLREDUCE(max_float, float, MPI_FLOAT, MPI_MAX, "float, largest", r + i, n - 1 + i)
ALLREDUCE(min_short, short, MPI_SHORT, MPI_MIN, "short, smallest", r + i, i)
ALLREDUCE(prod_double, double, MPI_DOUBLE, MPI_PROD, "double, product", r == 0 ? i : 1, i)
ALLREDUCE(or_unsigned, unsigned, MPI_UNSIGNED, MPI_BOR, "unsigned, bitwise or", 1u << (r % 16),
          (1u << (n < 16 ? n : 16)) - 1u)
ALLREDUCE(and_int, int, MPI_INT, MPI_LAND, "int, logical and", i % 2 == 0 || r != i % n, i % 2 == 0)

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    hello();
    ring();
    large_ring();
    sum_int();
    sum_long();
    sum_double();
    max_float();
    min_short();
    prod_double();
    or_unsigned();
    and_int();
    MPI_Finalize();
    return failures ? 1 : 0;
}
