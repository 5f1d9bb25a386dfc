/* Memory bandwidth: the triad a = b + 3 c over arrays that are larger than the caches.
 *
 * Options: --bytes N (of one array of one rank)   --repeats N
 * Output: {"test":"triad","ranks":2,"bytes":N,"unit":"MB/s","samples":[…]}
 *
 * All ranks work at the same time on arrays of their own. A sample is the bytes that all ranks read
 * and wrote together, by the program's own loads and stores, over the time of the slowest rank. */

#include "probe.h"

enum { MOST_REPEATS = 100 };

#ifdef __SSE2__
#include <emmintrin.h>

/* The stores go past the caches: others would first read what they overwrite, a third more traffic that
 * no published figure counts. malloc aligns for them; `length` is even. */
static void triad(double *restrict a, const double *restrict b, const double *restrict c, size_t length)
{
    const __m128d factor = _mm_set1_pd(3.0);
    for (size_t i = 0; i < length; i += 2)
        _mm_stream_pd(&a[i], _mm_add_pd(_mm_load_pd(&b[i]), _mm_mul_pd(factor, _mm_load_pd(&c[i]))));
    _mm_sfence();
}
#else
static void triad(double *restrict a, const double *restrict b, const double *restrict c, size_t length)
{
    for (size_t i = 0; i < length; i++)
        a[i] = b[i] + 3.0 * c[i];
}
#endif

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t length = (size_t)number_option(argc, argv, "--bytes", 64 << 20) / sizeof(double) / 2 * 2;
    int repeats = (int)number_option(argc, argv, "--repeats", 5);
    if (length < 2 || repeats < 1 || repeats > MOST_REPEATS)
        fail("This probe takes arrays of at least 16 bytes and 1 to 100 repeats.");

    double *a = allocate(length * sizeof *a), *b = allocate(length * sizeof *b);
    double *c = allocate(length * sizeof *c);
    for (size_t i = 0; i < length; i++) {
        a[i] = 1.0;
        b[i] = 2.0;
        c[i] = 0.5;
    }
    double samples[MOST_REPEATS];
    for (int repeat = -1; repeat < repeats; repeat++) { /* the first round only warms up */
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = seconds_now(), spent, slowest;
        triad(a, b, c, length);
        spent = seconds_now() - begin;
        MPI_Reduce(&spent, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0 && repeat >= 0)
            samples[repeat] = 1e-6 * ranks * 3.0 * (double)(length * sizeof(double)) / slowest;
    }
    for (size_t i = 0; i < length; i++)
        if (a[i] != 3.5)
            fail("The sum of two arrays is wrong.");
    if (rank == 0) {
        printf("{\"test\":\"triad\",\"ranks\":%d,\"bytes\":%zu,\"unit\":\"MB/s\",\"samples\":", ranks,
               length * sizeof(double));
        print_list(samples, repeats);
        puts("}");
    }
    free(a);
    free(b);
    free(c);
    MPI_Finalize();
    return 0;
}
