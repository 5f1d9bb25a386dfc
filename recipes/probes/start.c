/* Start and end an MPI job, and tell how long MPI_Init took in rank 0.
 *
 * Output: {"test":"init","unit":"ms","ranks":N,"samples":[milliseconds]} */

#include "probe.h"

int main(int argc, char **argv)
{
    double begin = seconds_now();
    MPI_Init(&argc, &argv);
    double milliseconds = 1e3 * (seconds_now() - begin);

    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) {
        printf("{\"test\":\"init\",\"unit\":\"ms\",\"ranks\":%d,\"samples\":", ranks);
        print_list(&milliseconds, 1);
        puts("}");
    }
    MPI_Finalize();
    return 0;
}
