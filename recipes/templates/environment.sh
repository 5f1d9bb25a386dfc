# Open MPI $release first in this shell. Read it with:  . environment.sh
# Reading it twice does no harm. No more is needed: compiled programs know where their library is, and man
# looks beside the folders of PATH.
mpiwizard_prefix=$prefix
case ":$${PATH}:" in
    ":$${mpiwizard_prefix}/bin:"*) ;;
    *) PATH="$${mpiwizard_prefix}/bin:$${PATH}" ;;
esac
export PATH
unset mpiwizard_prefix
