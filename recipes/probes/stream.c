/* Memory bandwidth: copy, scale, add and triad over arrays that are larger than the caches.
 *
 * Options: --bytes N (of one array of one rank)   --repeats N   --only copy|scale|add|triad
 * Output: {"test":"triad","ranks":2,"bytes":N,"unit":"MB/s","samples":[…]}
 *
 * All ranks work at the same time on arrays of their own. A sample is the bytes that all ranks read
 * and wrote together, by the program's own loads and stores, over the time of the slowest rank. */

#include "probe.h"

enum { KERNELS = 4, MOST_REPEATS = 100 };

static const char *const names[KERNELS] = {"copy", "scale", "add", "triad"};
static const int arrays_touched[KERNELS] = {2, 2, 3, 3};
static const double factor = 3.0;

static void run(int kernel, double *restrict a, double *restrict b, double *restrict c, size_t length)
{
    switch (kernel) {
    case 0:
        for (size_t i = 0; i < length; i++)
            c[i] = a[i];
        break;
    case 1:
        for (size_t i = 0; i < length; i++)
            b[i] = factor * c[i];
        break;
    case 2:
        for (size_t i = 0; i < length; i++)
            c[i] = a[i] + b[i];
        break;
    default:
        for (size_t i = 0; i < length; i++)
            a[i] = b[i] + factor * c[i];
    }
}

/* What each array holds after a kernel, computed with three numbers instead of three arrays. */
static void verify(int kernel, const double *result, double expected, size_t length)
{
    static char sentence[100];
    for (size_t i = 0; i < length; i += 509) /* a prime stride visits all lanes and pages */
        if (result[i] != expected) {
            snprintf(sentence, sizeof sentence, "The %s of two arrays gave a wrong number.", names[kernel]);
            fail(sentence);
        }
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *only = option(argc, argv, "--only", "");
    size_t length = (size_t)number_option(argc, argv, "--bytes", 64 << 20) / sizeof(double);
    int repeats = (int)number_option(argc, argv, "--repeats", 5);
    if (length < 1 || repeats < 1 || repeats > MOST_REPEATS)
        fail("This probe takes arrays of at least 8 bytes and 1 to 100 repeats.");

    double *a = allocate(length * sizeof *a), *b = allocate(length * sizeof *b);
    double *c = allocate(length * sizeof *c);
    for (size_t i = 0; i < length; i++) {
        a[i] = 1.0;
        b[i] = 2.0;
        c[i] = 0.5;
    }
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        double samples[MOST_REPEATS];
        if (*only != '\0' && strcmp(only, names[kernel]) != 0)
            continue;
        for (int repeat = -1; repeat < repeats; repeat++) { /* the first round only warms up */
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = seconds_now(), spent, slowest;
            run(kernel, a, b, c, length);
            spent = seconds_now() - begin;
            MPI_Reduce(&spent, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            if (rank == 0 && repeat >= 0)
                samples[repeat] = 1e-6 * ranks * arrays_touched[kernel] *
                                  (double)(length * sizeof(double)) / slowest;
        }
        const double *result[KERNELS] = {c, b, c, a};
        double expected[KERNELS] = {a[0], factor * c[0], a[0] + b[0], b[0] + factor * c[0]};
        verify(kernel, result[kernel], expected[kernel], length);
        if (rank == 0) {
            printf("{\"test\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"unit\":\"MB/s\",\"samples\":", names[kernel],
                   ranks, length * sizeof(double));
            print_list(samples, repeats);
            puts("}");
            fflush(stdout);
        }
    }
    free(a);
    free(b);
    free(c);
    MPI_Finalize();
    return 0;
}
