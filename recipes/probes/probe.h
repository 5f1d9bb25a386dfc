/* What all probe programs share: options, a timer, and the way a wrong result is told.
 *
 * A probe prints JSON, one object per line, on rank 0's standard output. A wrong result is one
 * sentence on standard error and a non-zero exit status. */

#ifndef MPIWIZARD_PROBE_H
#define MPIWIZARD_PROBE_H

#define _POSIX_C_SOURCE 200809L

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The program ends here, on all ranks. */
static inline void fail(const char *sentence)
{
    fprintf(stderr, "%s\n", sentence);
    fflush(NULL);
    nanosleep(&(struct timespec){0, 100000000}, NULL); /* or the launcher's own words may come first */
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* The text behind an option such as "--only", or `otherwise`. */
static inline const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return otherwise;
}

static inline long number_option(int argc, char **argv, const char *name, long otherwise)
{
    const char *text = option(argc, argv, name, NULL);
    char *end = NULL;
    long number = text ? strtol(text, &end, 10) : otherwise;
    if (text && (end == text || *end != '\0' || number < 0))
        fail("An option needs a whole number that is not negative.");
    return number;
}

/* Seconds of a clock that never jumps; unlike MPI_Wtime it may be asked before MPI_Init. */
static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline void *allocate(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL)
        fail("There is not enough memory for the buffers of this probe.");
    return memory;
}

/* Print numbers as a JSON list. */
static inline void print_list(const double *numbers, int count)
{
    putchar('[');
    for (int i = 0; i < count; i++)
        printf("%s%.9g", i ? "," : "", numbers[i]);
    putchar(']');
}

#endif
